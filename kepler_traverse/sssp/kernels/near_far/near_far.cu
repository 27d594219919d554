// Near-far single-source shortest paths in one cooperative launch.
//
// The loop over thresholds runs on the device; the host waits once, at the end. Each vertex
// holds a label (near_far/packed_distance.cuh): its distance and, with PREDECESSORS, its predecessor. Relaxing
// an edge is one atomic minimum on the label, so the result does not depend on the order of events.
//
//   near queue  vertices whose distance fell below the threshold. A vertex enters it at most once
//               per iteration: last_queued[v] holds the last step that queued v.
//   far pile    vertices reached for the first time at or beyond the threshold. Thresholds only
//               rise, so a vertex enters it once per search. An entry below the threshold is stale:
//               that vertex has been in the near queue.
//
// A capacity of one entry per vertex is therefore enough for each of them. All threads read the same LoopState
// (near_far/near_far_state.cuh) after the grid barrier that begins an iteration, and so choose the same action:
//
//   relax       relaxes the edges of the near queue. Adjacency lists of CHUNK edges or more are
//               relaxed in chunks. If there are few edges, each block then runs local rounds from the
//               vertices that it improved, without a grid barrier
//   split       raises the threshold and splits the far pile. No distance changes
//   small iterations  block 0 alone relaxes and splits while there is little to do, with its queue
//               and state in shared memory
//
// Reads:  the CSR graph.
// Writes: one distance per vertex; with PREDECESSORS one predecessor per vertex.
//
// Compile-time constants, other than those of the headers in near_far/:
//   BLOCK, MIN_BLOCKS    threads per block, and blocks per multiprocessor
//   CHUNK_WARPS          warps per chunk; 0: all warps of a block
//   LOCAL_ROUND_EDGES    edges of the near queue up to which blocks run local rounds
//   LOCAL_ROUND_DEGREE   mean degree of the near queue up to which blocks run local rounds
//   CLEANS_UP            1: the last pass clears the labels for the next search
//   TRACE                iterations that are traced; 0: none
//
// Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source
// shortest paths. IPDPS 2014. Wang, Fussell, Lin. ADDS. PPoPP 2021 (adaptive width).
#include <kt/trace.cuh>

#include "near_far_relax.cuh"

// What a search reports to the host.
struct Outcome {
  int64 last_step;
  int64 is_settled;  // whether it stopped because the distances of all targets were final
  int64 limit;       // key; if it stopped so, distances up to this are complete
  int64 n_open;      // reached vertices without a predecessor
  int64 threshold;   // key; below it all distances are final, unless the search stopped early
};

// What the host passes (sssp/near_far_gpu.py).
struct NearFarArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  weight_t limit;                            // vertices beyond it are not reached
  weight_t width;                            // distance between the first two thresholds
  KT_NULLABLE const int64* target_vertices;  // once their distances are final, the search ends
  int64 n_target_vertices;
  int32 n_local_rounds;  // rounds per block between two grid barriers, with that of the grid itself
  vertex_t source;
  int32 first_step;            // above the stamps of earlier searches, so that they need not be cleared
  KT_NULLABLE uint64* packed;  // [n_vertices] labels, with PREDECESSORS
  ordered_t* keys;             // [n_vertices] distances; without PREDECESSORS these are the labels
  KT_NULLABLE vertex_t* predecessor;
  int32* last_queued;  // [n_vertices] stamps: the last step that queued a vertex as near
  vertex_t* queue;
  vertex_t* next_queue;
  vertex_t* piles;  // [2][n_vertices]
  uint64* chunks;   // [2][chunk_capacity]
  int64 chunk_capacity;
  kt::LoopState* states;  // [3]
  uint32* arrived;        // counter of the grid barrier; 0 at launch
  Outcome* outcome;
  KT_NULLABLE int64* trace;
};

namespace {

// Scopes: the threads that run an iteration together.
struct Grid {
  static constexpr bool IS_SMALL = false;
  KT_DEVICE static kt::Team team() { return kt::whole_grid(); }
  KT_DEVICE static bool is_first() { return kt::thread_id() == 0; }
};
struct OneBlock {
  static constexpr bool IS_SMALL = true;
  KT_DEVICE static kt::Team team() { return kt::one_block(); }
  KT_DEVICE static int64 thread() { return kt::thread_in_block(); }
  KT_DEVICE static int64 n_threads() { return BLOCK; }
  KT_DEVICE static bool is_first() { return thread() == 0; }
  KT_DEVICE static void barrier() { kt::block_barrier(); }
};

// Whether the distances of all targets are final; all threads of a block call it. No distance falls below the
// threshold any more, so a value that is out of date gives the same result.
KT_DEVICE bool targets_are_settled(const kt::Search& search, const kt::LoopState& prev) {
  if (search.n_target_vertices == 0 || prev.near || prev.gap) return false;
  bool is_open = false;
  for (int64 i = kt::thread_in_block(); i < search.n_target_vertices; i += BLOCK)
    is_open |= search.key(static_cast<vertex_t>(kt::load_constant(search.target_vertices + i))) >= prev.threshold;
  return !kt::block_any(is_open);
}

// Relaxes the edges of the near queue, the `prev.near` vertices of `near`.
template <typename Scope>
KT_DEVICE void relax(const kt::Search& search, const kt::LoopState& prev, int32 iteration, const vertex_t* near,
                     const kt::LocalRounds& local_rounds, kt::Piles<Scope>& into) {
  // Where degrees are high, a block's local frontier could outgrow those of all others.
  const bool runs_locally = !Scope::IS_SMALL && search.n_local_rounds > 1 && prev.chunks == 0 &&
                            prev.edges <= LOCAL_ROUND_EDGES && prev.edges <= LOCAL_ROUND_DEGREE * prev.near;

  // Lists shorter than CHUNK.
  const ordered_t threshold = prev.current().key;
  kt::Relax<Scope> relaxer = {search, threshold,    static_cast<int32>(prev.step),
                              into,   runs_locally, local_rounds.improved_in(0)};
  const auto lists = [&](int64 i, bool) {
    const kt::AdjacencyList list = kt::adjacency_list(search.offsets, near[i]);
    return Scope::IS_SMALL || list.end - list.begin < CHUNK ? list : kt::AdjacencyList{};
  };
  kt::visit_lists(search.targets, Scope::team(), prev.near, prev.edges - prev.chunks * CHUNK, lists, relaxer);
  if (runs_locally) kt::run_local_rounds(search, local_rounds, relaxer);

  // The chunks of the others.
  const int64 n_chunks = Scope::IS_SMALL ? 0 : prev.chunks;
  const kt::Teams teams(CHUNK_WARPS);
  for (int64 i = teams.mine(); i < n_chunks; i += teams.how_many()) {
    const uint64 chunk = search.chunks(iteration)[i];
    const kt::AdjacencyList list = kt::chunk_of<CHUNK, kt::VERTEX_BITS>(search.offsets, chunk);
    kt::edges_of_list<UNROLL>(search.targets, teams.team(), list, relaxer);
  }
}

// Moves the vertices of the far pile that are below the new threshold to the near queue.
template <typename Scope>
KT_DEVICE void split(const kt::Search& search, const kt::LoopState& prev, ordered_t threshold, kt::Piles<Scope>& into) {
  const vertex_t* const pile = search.far(prev.side);
  const int64 size = prev.far_size();
  for (int64 first = Scope::team().warp * WARP; first < size; first += Scope::team().n_warps * WARP) {
    const int64 i = first + kt::lane();
    const vertex_t v = i < size ? pile[i] : static_cast<vertex_t>(0);
    const ordered_t key = i < size ? kt::key_in(search.labels[v]) : static_cast<ordered_t>(-1);
    const bool stays_far = key >= threshold;
    if (stays_far && kt::INFINITE - key > into.gap) into.gap = kt::INFINITE - key;
    into.add(!stays_far && key >= prev.threshold, stays_far, v);
  }
}

// Traces the beginning of an iteration; one thread calls it.
KT_DEVICE void trace_iteration(const kt::Trace& trace, bool is_small, const kt::LoopState& prev) {
  const kt::IterationKind relaxing = is_small ? kt::SMALL_RELAX : kt::RELAX,
                          splitting = is_small ? kt::SMALL_SPLIT : kt::SPLIT;
  trace.add(trace.now(), prev.near ? relaxing : splitting, prev.step, prev.near ? prev.near : prev.far_size(),
            prev.edges);
}

// Runs one iteration: from the state `prev` to the state `next`, to which other threads add as well.
template <typename Scope>
KT_DEVICE void iterate(const kt::Search& search, const kt::LoopState& prev, kt::LoopState& next, int32 iteration,
                       const vertex_t* near, vertex_t* near_shared, const kt::LocalRounds& local_rounds,
                       kt::BlockSums* sums) {
  const bool splits = prev.near == 0;
  const kt::Threshold now = splits ? kt::next_threshold(prev) : prev.current();
  const int64 side = splits ? 1 - prev.side : prev.side;
  const int64 far_before = splits ? 0 : prev.far_size();
  kt::Piles<Scope> into = {search.offsets,
                           &next,
                           search.near(iteration + 1),
                           near_shared,
                           search.chunks(iteration + 1),
                           search.far(side) + far_before};
  if (splits)
    split(search, prev, now.key, into);
  else
    relax(search, prev, iteration, near, local_rounds, into);
  into.flush();

  // The next state: all threads add their counts, and the first one stores the rest.
  kt::add_counts<Scope>(&next, splits, into.edges, into.gap, sums);
  if (!Scope::is_first()) return;
  next.step = prev.step + !splits;
  next.threshold = now.key;
  next.width = kt::bits_of(now.width);
  next.far_before = far_before;
  next.side = side;
  next.phase = prev.phase + (splits && !prev.gap);
  next.phase_steps = splits ? 0 : prev.phase_steps + 1;
  next.phase_edges = splits ? 0 : prev.phase_edges + prev.edges;
  next.last_split = splits ? prev.far_size() : prev.last_split;
}

// Runs iterations in a small scope alone, until there is too much work for it. Leaves the queue, the chunks and the
// state in global memory as one iteration of the grid does.
template <typename Scope>
KT_DEVICE void iterate_small(const kt::Search& search, const kt::LoopState& prev, kt::LoopState& next,
                             int32 grid_iteration, vertex_t* queues, kt::LoopState* small_states,
                             const kt::Trace& trace) {
  // Copy the near queue and the state to shared memory.
  const kt::LoopStates states = {small_states};
  for (int64 i = Scope::thread(); i < prev.near; i += Scope::n_threads()) queues[i] = search.near(grid_iteration)[i];
  kt::LoopStates::copy(states.read(0), prev, Scope::thread());
  kt::LoopStates::clear(states.written(0), Scope::thread());
  kt::LoopStates::clear(states.cleared(0), Scope::thread());

  int32 iteration = 0;
  while (true) {
    Scope::barrier();
    const kt::LoopState& now = states.read(iteration);
    if (now.is_over() || !now.is_small() || targets_are_settled(search, now)) break;
    if (TRACE && Scope::is_first()) trace_iteration(trace, true, now);
    kt::LoopStates::clear(states.cleared(iteration), Scope::thread());
    iterate<Scope>(search, now, states.written(iteration), grid_iteration, queues + iteration % 2 * SMALL,
                   queues + (iteration + 1) % 2 * SMALL, {}, nullptr);
    ++iteration;
  }

  // Copy them back.
  const kt::LoopState& last = states.read(iteration);
  vertex_t* const near = search.near(grid_iteration + 1);
  for (int64 i = Scope::thread(); i < last.near; i += Scope::n_threads()) {
    if (i < SMALL) near[i] = queues[iteration % 2 * SMALL + i];
    kt::list_chunks<CHUNK, kt::VERTEX_BITS>(near[i], kt::degree_of(search.offsets, near[i]),
                                            search.chunks(grid_iteration + 1), &next.chunks);
  }
  // All threads have counted the chunks above. Small iterations count none, so this word is not copied.
  if (kt::LoopStates::words_of(next) + Scope::thread() != &next.chunks)
    kt::LoopStates::copy(next, last, Scope::thread());
}

// Key of the farthest target. All threads of a block call it; *farthest is in shared memory, and 0 at first.
KT_DEVICE ordered_t farthest_target(const kt::Search& search, int64* farthest) {
  for (int64 i = kt::thread_in_block(); i < search.n_target_vertices; i += BLOCK)
    kt::atomic_max(farthest, int64{search.key(static_cast<vertex_t>(kt::load_constant(search.target_vertices + i)))});
  kt::block_barrier();
  return static_cast<ordered_t>(*farthest);
}

// Writes the results. Vertices beyond the farthest target become unreached, since their distances may not be final;
// with PREDECESSORS, labels become distances and predecessors.
KT_DEVICE void finish(const kt::Search& search, const kt::LoopState& last, bool is_settled, int64* farthest,
                      uint32* arrived, ordered_t* keys, vertex_t* predecessor, Outcome& outcome) {
  ordered_t limit = kt::INFINITE;
  if (is_settled) {
    limit = farthest_target(search, farthest);
    kt::grid_barrier(arrived);  // all blocks read the labels of the targets before any is cleared
  }
  if (PREDECESSORS) {
    const int32 n_open = kt::unpack_labels(search.labels, search.n_vertices, limit, CLEANS_UP, keys, predecessor);
    if (n_open) kt::atomic_add(&outcome.n_open, int64{n_open});
  } else if (is_settled) {
    for (int64 v = kt::thread_id(); v < search.n_vertices; v += kt::n_threads())
      if (keys[v] > limit) keys[v] = kt::INFINITE;
  }
  if (kt::thread_id() != 0) return;
  outcome.last_step = last.step;
  outcome.is_settled = is_settled;
  outcome.limit = limit;
  outcome.threshold = last.threshold;
}

// Initializes labels, stamps and the state. With CLEANS_UP there is no pass over all vertices: the previous search
// has cleared the labels, and its stamps are below first_step.
KT_DEVICE void begin(const kt::Search& search, const NearFarArgs& args, const kt::LoopStates& states,
                     const kt::Trace& trace, Outcome& outcome) {
  if (!PREDECESSORS || !CLEANS_UP) kt::begin_labels(search.labels, search.n_vertices, args.source);
  for (int64 v = kt::thread_id(); !CLEANS_UP && v < search.n_vertices; v += kt::n_threads()) search.last_queued[v] = -1;
  if (kt::thread_id() != 0) return;
  for (int32 w = 0; w < 3 * kt::LoopStates::N_WORDS; ++w) kt::LoopStates::words_of(states.states[0])[w] = 0;
  if (PREDECESSORS && CLEANS_UP) search.labels[args.source] = kt::label_of(0, args.source);
  search.queue[0] = args.source;
  kt::LoopState& first = states.read(0);
  first.near = 1;
  first.edges = kt::degree_of(search.offsets, args.source);
  first.step = args.first_step;
  first.threshold = kt::to_ordered(args.width) > 0 ? kt::to_ordered(args.width) : 1;
  first.width = kt::bits_of(args.width);
  kt::list_chunks<CHUNK, kt::VERTEX_BITS>(args.source, first.edges, search.all_chunks, &first.chunks);
  outcome.n_open = 0;
  trace.clear();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(KT_BOUNDS) sssp_near_far(const NearFarArgs args) {
  KT_SHARED(vertex_t, queues, [2 * SMALL]);
  KT_SHARED(kt::LoopState, small_states, [3]);
  KT_SHARED(kt::LoopState, prev, [1]);
  KT_SHARED(kt::BlockSums, sums, [1]);
  KT_SHARED(vertex_t, improved, [2 * LOCAL]);
  KT_SHARED(ordered_t, improved_to, [2 * LOCAL]);
  KT_SHARED(int32, n_improved, [3]);
  const kt::LocalRounds local_rounds = {improved, improved_to, n_improved};
  const kt::Trace trace = {args.trace};
  const kt::LoopStates states = {args.states};
  Outcome& outcome = *args.outcome;
  kt::label_t* const labels =
      reinterpret_cast<kt::label_t*>(PREDECESSORS ? static_cast<void*>(args.packed) : args.keys);
  const kt::Search search = {args.offsets,
                             args.targets,
                             args.weights,
                             args.n_vertices,
                             kt::to_ordered(args.limit),
                             args.target_vertices,
                             args.n_target_vertices,
                             labels,
                             args.last_queued,
                             args.queue,
                             args.next_queue,
                             args.piles,
                             args.chunks,
                             args.chunk_capacity,
                             args.n_local_rounds};

  begin(search, args, states, trace, outcome);
  if (kt::thread_in_block() == 0) sums[0] = {0, 0, 0};
  bool is_settled = false;
  for (int32 iteration = 0;; ++iteration) {
    // Read the state that the last iteration left.
    kt::grid_barrier(args.arrived);
    kt::LoopStates::copy(prev[0], states.read(iteration), kt::thread_in_block());
    if (kt::thread_in_block() < 3) n_improved[kt::thread_in_block()] = 0;
    kt::block_barrier();

    if (prev->is_over()) break;
    is_settled = targets_are_settled(search, prev[0]);
    if (is_settled) break;

    // Run an iteration of the grid, or small ones of block 0 alone, while the others wait at the barrier.
    kt::LoopStates::clear(states.cleared(iteration), kt::thread_id());
    kt::LoopState& next = states.written(iteration);
    if (TRACE && kt::thread_id() == 0 && !prev->is_small()) trace_iteration(trace, false, prev[0]);
    if (!prev->is_small())
      iterate<Grid>(search, prev[0], next, iteration, search.near(iteration), nullptr, local_rounds, sums);
    else if (kt::block_id() == 0)
      iterate_small<OneBlock>(search, prev[0], next, iteration, queues, small_states, trace);
  }
  if (TRACE && kt::thread_id() == 0) trace.add(trace.now(), kt::LAST_PASS, prev->step, 0, 0);
  finish(search, prev[0], is_settled, &sums->farthest, args.arrived, args.keys, args.predecessor, outcome);
  if (TRACE && kt::thread_id() == 0) trace.add(trace.now(), kt::END, prev->step, 0, 0);
}
