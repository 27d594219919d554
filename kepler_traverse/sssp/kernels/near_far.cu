// Near and far: shortest paths in one cooperative launch; nothing returns to the host.
//
// An offer is one atomic minimum on the label of a vertex (kt/labels.cuh), which decides
// the distance and, with PREDECESSORS, the predecessor.
// A vertex that fell below the threshold enters the next near queue, once a turn: its
// mark holds the last turn that queued it. One met for the first time at or beyond the
// threshold enters the far pile. Thresholds only rise, so it does so once in a search,
// and an entry below the threshold is stale: that vertex has been near. Once nothing is
// near, the threshold rises and the pile is split. A pile of one place a vertex and a
// queue of one place a vertex therefore never overflow.
//
// A turn begins with a barrier, after which all know the same counts and choose alike:
//
//   relax   the edges of the near queue; rows of CHUNK edges and more in pieces. While they
//           are few, each block goes on from what it lowered for n_hops hops, to itself
//   split   the far pile by the next threshold; no distance changes
//   small   block 0 takes turns of its own, near queues and counts in shared memory
//
// Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source
// shortest paths. IPDPS 2014. Wang, Fussell, Lin. ADDS. PPoPP 2021 (a width that adapts).
#include <kt/offers.cuh>
#include <kt/trace.cuh>

namespace {

using kt::int32;
using kt::int64;
using kt::ordered_t;
using kt::Search;
using kt::uint32;
using kt::uint64;

// Who takes turns together.
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

// Whether the targets asked for are settled; all threads of a block come. What is not
// below the threshold now will never be below this one, so an old distance says the same.
KT_DEVICE bool is_enough(const Search& search, const int64* told) {
  if (search.n_wanted == 0 || told[kt::NEAR] || told[kt::GAP]) return false;
  bool is_open = false;
  for (int64 i = kt::thread_in_block(); i < search.n_wanted; i += BLOCK)
    is_open |= search.key(static_cast<vertex_t>(kt::load_constant(search.wanted + i))) >= told[kt::THRESHOLD];
  return !kt::block_any(is_open);
}

template <typename Who>
KT_DEVICE void relax(const Search& search, const int64* told, int32 turn, const vertex_t* near, const kt::Hops& hops,
                     kt::Piles<Who>& into) {
  // Where degrees are high, a block's share of the edges could grow beyond all others'.
  const bool goes_on = !Who::IS_SMALL && search.n_hops > 1 && told[kt::PIECES] == 0 && told[kt::EDGES] <= HOP_EDGES &&
                       told[kt::EDGES] <= HOP_DEGREE * told[kt::NEAR];
  const ordered_t threshold = static_cast<ordered_t>(told[kt::THRESHOLD]);
  kt::Relax<Who> offer = {search, threshold, static_cast<int32>(told[kt::STEP]), into, goes_on, hops.of(0)};
  const auto rows = [&](int64 i, bool) {
    const kt::Row row = kt::row_of(search.offsets, near[i]);
    return Who::IS_SMALL || row.end - row.begin < CHUNK ? row : kt::Row{};
  };
  kt::walk(search.targets, Who::team(), told[kt::NEAR], told[kt::EDGES] - told[kt::PIECES] * CHUNK, rows, offer);
  if (goes_on) kt::go_on(search, hops, offer);
  const int64 n_pieces = Who::IS_SMALL ? 0 : told[kt::PIECES];
  const kt::Teams teams(PIECE_WARPS);
  for (int64 i = teams.mine(); i < n_pieces; i += teams.how_many()) {
    const uint64 piece = search.pieces(turn)[i];
    kt::Row row = kt::row_of(search.offsets, static_cast<vertex_t>(piece & ((uint64{1} << kt::VERTEX_BITS) - 1)));
    row.begin += static_cast<offset_t>(piece >> kt::VERTEX_BITS) * CHUNK;
    if (row.end > row.begin + CHUNK) row.end = row.begin + CHUNK;
    if (AHEAD > 1)
      kt::edges_of_row_ahead<AHEAD>(teams.team(), row, offer);
    else
      kt::edges_of_row(search.targets, teams.team(), row, offer);
  }
}

template <typename Who>
KT_DEVICE void split(const Search& search, const int64* told, ordered_t threshold, kt::Piles<Who>& into) {
  const vertex_t* const pile = search.far(told[kt::SIDE]);
  const int64 size = kt::far_size(told);
  for (int64 first = Who::team().warp * kt::WARP; first < size; first += Who::team().n_warps * kt::WARP) {
    const int64 i = first + kt::lane();
    const vertex_t v = i < size ? pile[i] : static_cast<vertex_t>(0);
    const ordered_t key = i < size ? kt::key_in(search.labels[v]) : static_cast<ordered_t>(-1);
    const bool is_kept = key >= threshold;
    if (is_kept && kt::INFINITE - key > into.gap) into.gap = kt::INFINITE - key;
    into.add(!is_kept && key >= told[kt::THRESHOLD], is_kept, v);
  }
}

// By the thread that comes first: what a turn begins with.
KT_DEVICE void note(const kt::Trace& trace, bool is_small, const int64* told) {
  const kt::Turn relaxing = is_small ? kt::SMALL_RELAX : kt::RELAX, splitting = is_small ? kt::SMALL_SPLIT : kt::SPLIT;
  trace.note(trace.now(), told[kt::NEAR] ? relaxing : splitting, told[kt::STEP],
             told[kt::NEAR] ? told[kt::NEAR] : kt::far_size(told), told[kt::EDGES]);
}

// One turn, from what is told to what is told next.
template <typename Who>
KT_DEVICE void take_turn(const Search& search, const int64* told, int64* next, int32 turn, const vertex_t* near,
                         vertex_t* near_shared, const kt::Hops& hops, int64* of_block) {
  const bool splits = told[kt::NEAR] == 0;
  const kt::Threshold now = splits ? kt::raised(told)
                                   : kt::Threshold{static_cast<ordered_t>(told[kt::THRESHOLD]),
                                                   kt::float_of(static_cast<ordered_t>(told[kt::WIDTH]))};
  const int64 side = splits ? 1 - told[kt::SIDE] : told[kt::SIDE];
  const int64 pile = splits ? 0 : kt::far_size(told);
  kt::Piles<Who> into = {search.offsets,         next, search.near(turn + 1), near_shared, search.pieces(turn + 1),
                         search.far(side) + pile};
  if (splits)
    split(search, told, now.key, into);
  else
    relax(search, told, turn, near, hops, into);
  into.empty();
  kt::publish<Who>(next, splits, into.edges, into.gap, of_block);
  if (!Who::is_first()) return;
  next[kt::STEP] = told[kt::STEP] + !splits;
  next[kt::THRESHOLD] = now.key;
  next[kt::WIDTH] = kt::bits_of(now.width);
  next[kt::PILE] = pile;
  next[kt::SIDE] = side;
  next[kt::PHASE] = told[kt::PHASE] + (splits && !told[kt::GAP]);
  next[kt::PHASE_STEPS] = splits ? 0 : told[kt::PHASE_STEPS] + 1;
  next[kt::PHASE_EDGES] = splits ? 0 : told[kt::PHASE_EDGES] + told[kt::EDGES];
  next[kt::WAS_FAR] = splits ? kt::far_size(told) : told[kt::WAS_FAR];
}

// Turns of few alone, until there is too much for them. They end as a turn of the grid does.
template <typename Few>
KT_DEVICE void small_turns(const Search& search, const int64* told, int64* next, int32 turn_of_grid, vertex_t* queues,
                           int64* words, const kt::Trace& trace) {
  for (int64 i = Few::thread(); i < told[kt::NEAR]; i += Few::n_threads()) queues[i] = search.near(turn_of_grid)[i];
  for (int64 w = Few::thread(); w < 3 * kt::N_WORDS; w += Few::n_threads()) words[w] = w < kt::N_WORDS ? told[w] : 0;
  const int64* now = words;
  int32 turn = 0;
  while (true) {
    Few::barrier();
    now = words + turn % 3 * kt::N_WORDS;
    if (kt::is_over(now) || !kt::is_small(now) || is_enough(search, now)) break;
    if (TRACE && Few::is_first()) note(trace, true, now);
    if (Few::thread() < kt::N_WORDS) words[(turn + 2) % 3 * kt::N_WORDS + Few::thread()] = 0;
    take_turn<Few>(search, now, words + (turn + 1) % 3 * kt::N_WORDS, turn_of_grid, queues + turn % 2 * SMALL,
                   queues + (turn + 1) % 2 * SMALL, {}, nullptr);
    ++turn;
  }
  vertex_t* const near = search.near(turn_of_grid + 1);
  for (int64 i = Few::thread(); i < now[kt::NEAR]; i += Few::n_threads()) {
    if (i < SMALL) near[i] = queues[turn % 2 * SMALL + i];
    kt::cut(near[i], kt::degree_of(search.offsets, near[i]), search.pieces(turn_of_grid + 1), next + kt::PIECES);
  }
  if (Few::thread() < kt::N_WORDS && Few::thread() != kt::PIECES) next[Few::thread()] = now[Few::thread()];
}

// The largest distance of a target; all threads of the block come, `latest` is its own and zero.
KT_DEVICE ordered_t farthest_wanted(const Search& search, int64* latest) {
  for (int64 i = kt::thread_in_block(); i < search.n_wanted; i += BLOCK)
    kt::atomic_max(latest, int64{search.key(static_cast<vertex_t>(kt::load_constant(search.wanted + i)))});
  kt::block_barrier();
  return static_cast<ordered_t>(*latest);
}

// What a search leaves: vertices beyond settled targets unreached, and with PREDECESSORS
// distances and predecessors out of labels. Into outcome: see below.
KT_DEVICE void end(const Search& search, const int64* told, bool is_settled, int64* of_block, uint32* arrived,
                   ordered_t* keys, vertex_t* predecessor, int64* outcome) {
  ordered_t limit = kt::INFINITE;
  if (is_settled) {
    limit = farthest_wanted(search, of_block);
    kt::grid_barrier(arrived);  // all have looked before a label is cleared
  }
  if (PREDECESSORS) {
    const int32 n_open = kt::unpack_labels(search.labels, search.n_vertices, limit, CLEANS_UP, keys, predecessor);
    if (n_open) kt::atomic_add(outcome + 3, int64{n_open});
  } else if (is_settled) {
    for (int64 v = kt::thread_id(); v < search.n_vertices; v += kt::n_threads())
      if (keys[v] > limit) keys[v] = kt::INFINITE;
  }
  if (kt::thread_id() != 0) return;
  outcome[0] = told[kt::STEP];
  outcome[1] = is_settled;
  outcome[2] = limit;
  outcome[4] = told[kt::THRESHOLD];
}

}  // namespace

// Into outcome: the number of the last step, whether vertices were left because the targets
// are settled, up to which distance (its key) the search is complete then, how many reached
// vertices lack a predecessor, and the last threshold (its key), below which all distances are
// unless vertices were left. Steps are counted from `first_step` on: marks of searches
// before are smaller, so that with CLEANS_UP there is no pass over all vertices at the start.
extern "C" __global__ void __launch_bounds__(KT_BOUNDS)
    sssp_near_far(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                  const weight_t* __restrict__ weights, int64 n_vertices, weight_t limit, weight_t width,
                  const int64* __restrict__ wanted, int64 n_wanted, int32 n_hops, vertex_t source, int32 first_step,
                  uint64* packed, ordered_t* keys, vertex_t* predecessor, int32* marks, vertex_t* queue,
                  vertex_t* next_queue, vertex_t* piles, uint64* pieces, int64 piece_room, int64* words,
                  uint32* arrived, int64* outcome, int64* trace_rows) {
  KT_SHARED(vertex_t, queues, [2 * SMALL]);
  KT_SHARED(int64, small_words, [3 * kt::N_WORDS]);
  KT_SHARED(int64, told, [kt::N_WORDS]);
  KT_SHARED(int64, of_block, [kt::N_WORDS]);
  KT_SHARED(vertex_t, lowered, [2 * LOCAL]);
  KT_SHARED(ordered_t, lowered_to, [2 * LOCAL]);
  KT_SHARED(int32, n_lowered, [3]);
  const kt::Hops hops = {lowered, lowered_to, n_lowered};
  const kt::Trace trace = {trace_rows};
  kt::label_t* const labels =
      PREDECESSORS ? reinterpret_cast<kt::label_t*>(packed) : reinterpret_cast<kt::label_t*>(keys);
  const Search search = {offsets,    targets,  weights, n_vertices, kt::to_ordered(limit),
                         wanted,     n_wanted, labels,  marks,      queue,
                         next_queue, piles,    pieces,  piece_room, n_hops};
  if (!PREDECESSORS || !CLEANS_UP) kt::begin_labels(labels, n_vertices, source);
  for (int64 v = kt::thread_id(); !CLEANS_UP && v < n_vertices; v += kt::n_threads()) marks[v] = -1;
  if (kt::thread_in_block() < kt::N_WORDS) of_block[kt::thread_in_block()] = 0;
  if (kt::thread_id() == 0) {
    for (int32 w = 0; w < 3 * kt::N_WORDS; ++w) words[w] = 0;
    if (PREDECESSORS && CLEANS_UP) labels[source] = kt::label_of(0, source);
    queue[0] = source;
    words[kt::NEAR] = 1;
    words[kt::EDGES] = kt::degree_of(offsets, source);
    words[kt::STEP] = first_step;
    words[kt::THRESHOLD] = kt::to_ordered(width) > 0 ? kt::to_ordered(width) : 1;
    words[kt::WIDTH] = kt::bits_of(width);
    kt::cut(source, words[kt::EDGES], pieces, words + kt::PIECES);
    outcome[3] = 0;
    trace.clear();
  }
  bool is_settled = false;
  for (int32 turn = 0;; ++turn) {
    kt::grid_barrier(arrived);
    const int32 t = kt::thread_in_block();
    if (t < kt::N_WORDS) told[t] = words[turn % 3 * kt::N_WORDS + t];
    if (t < 3) n_lowered[t] = 0;
    kt::block_barrier();
    if (kt::is_over(told)) break;
    is_settled = is_enough(search, told);
    if (is_settled) break;
    if (kt::thread_id() < kt::N_WORDS) words[(turn + 2) % 3 * kt::N_WORDS + kt::thread_id()] = 0;
    int64* const next = words + (turn + 1) % 3 * kt::N_WORDS;
    if (TRACE && kt::thread_id() == 0 && !kt::is_small(told)) note(trace, false, told);
    if (!kt::is_small(told))
      take_turn<Grid>(search, told, next, turn, search.near(turn), nullptr, hops, of_block);
    else if (kt::block_id() == 0)
      small_turns<OneBlock>(search, told, next, turn, queues, small_words, trace);
  }
  if (TRACE && kt::thread_id() == 0) trace.note(trace.now(), kt::LAST_PASS, told[kt::STEP], 0, 0);
  end(search, told, is_settled, of_block, arrived, keys, predecessor, outcome);
  if (TRACE && kt::thread_id() == 0) trace.note(trace.now(), kt::END, told[kt::STEP], 0, 0);
}
