// Direction-optimizing BFS in one cooperative launch.
//
// Continues with the frontier that the cluster kernel leaves (kernels/bfs_persistent_state.cuh). All threads read
// the same LoopState after the grid barrier that ends a level, and so choose the same step:
//
//   push   from a queue. Adjacency lists of CHUNK edges or more are expanded in chunks
//   pull   over bitmaps, each adjacency list up to its first hit. At most one phase per search:
//          it begins once the frontier has more than 1 / ALPHA of the unexplored edges and ends
//          once it has fewer than 1 / BETA of the vertices
//
// Each step takes one grid barrier per level.
//
// Frontier    push: a contiguous range of the queue and the chunks of its long adjacency lists.
//             pull: a bitmap. The vertices of the last pull level are listed in the queue again
// Visited     the claims; while pulling also a bitmap
//
// Reads:  the CSR graph and, to pull, its reverse.
// Writes: one claim per vertex; with PREDECESSORS, distances and predecessors from the claims.
//
// Compile-time constants, other than those of bfs_persistent_state.cuh:
//   BLOCK, MIN_BLOCKS   threads per block, and blocks per multiprocessor
//   ALPHA, BETA         when pulling begins and ends, as above
//   UNROLL              edges per lane that are loaded together
//   CHUNK_WARPS         warps per chunk; 0: those of a block
//   SHARED_LISTS        1: lanes search for their edges even where the frontier is small
//   PATIENCE            edges that a lane pulls alone before its warp helps
//   CLEANS_UP           1: leaves the claims cleared for the next search
//   TRACE               iterations that are traced; 0: none
//
// Beamer, Asanovic, Patterson. Direction-optimizing breadth-first search. SC 2012.
// Gupta, Stuart, Owens. A study of persistent threads style GPU programming. 2012.
#include <kt/advance.cuh>
#include <kt/thread_queue.cuh>
#include <kt/trace.cuh>

#include "bfs_persistent_state.cuh"

// What a search reports to the host.
struct Outcome {
  int64 levels;      // that were searched
  int64 is_stopped;  // whether the frontier is not empty
};

// What the host passes (bfs/persistent.py).
struct PersistentArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const offset_t* in_offsets;  // null: no pulling
  KT_NULLABLE const vertex_t* in_targets;
  int64 n_vertices;
  int64 n_edges;
  int32 last_level;
  KT_NULLABLE const int64* target_vertices;  // vertices whose distances end the search
  int64 n_target_vertices;
  KT_NULLABLE uint64* packed;  // [n_vertices] claims, with PREDECESSORS
  vertex_t* queue;             // [n_vertices]
  uint64* chunks;
  uint32* bitmaps;        // [3][n_vertices / 32, rounded up]: visited, frontier, next frontier
  kt::LoopState* states;  // [3]
  uint32* arrived;        // of the grid barrier, 0 at first
  int32* distance;        // [n_vertices]; the claims, without PREDECESSORS
  KT_NULLABLE vertex_t* predecessor;
  Outcome* outcome;
  KT_NULLABLE int64* trace;
};

namespace {

struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  const offset_t* in_offsets;
  const vertex_t* in_targets;
  int64 n_vertices;
  kt::claim_t* claims;
};

// Uniform across the grid after each barrier.
struct Frontier {
  int32 level = 0;
  vertex_t* queue;
  int64 n_queued = 0;
  uint64* chunks;
  int64 n_chunks = 0;
  int64 vertices = 0, edges = 0;
};

// Claims the heads of edges. All lanes of a warp call it.
struct Push {
  const vertex_t* targets;
  kt::claim_t* claims;
  int32 level;
  kt::FrontierBuilder& into;
  kt::LocalQueue found;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    take(valid && make(u, v, kt::racy_load(claims + v)), v);
  }
  // The same for N edges per lane, with N loads in flight.
  template <int32 N>
  KT_DEVICE void unrolled(const kt::Edges<N>& edges) {
    vertex_t v[N];
    kt::claim_t old[N];
#pragma unroll
    for (int32 i = 0; i < N; ++i) v[i] = edges.valid[i] ? kt::load_constant(targets + edges.e[i]) : edges.u[i];
#pragma unroll
    for (int32 i = 0; i < N; ++i) old[i] = kt::racy_load(claims + v[i]);
#pragma unroll
    for (int32 i = 0; i < N; ++i) take(edges.valid[i] && make(edges.u[i], v[i], old[i]), v[i]);
  }
  // `old` may be too large, as claims only fall: then the result of the atomic decides.
  KT_DEVICE bool make(vertex_t u, vertex_t v, kt::claim_t old) const {
    const kt::claim_t mine = kt::claim_of(level + 1, u);
    return mine < old && kt::level_of(kt::atomic_min(claims + v, mine)) == kt::UNREACHED;
  }
  KT_DEVICE void take(bool discovered, vertex_t v) {
    if (discovered) found.push(v);
    if (kt::any(ALL_LANES, found.is_full())) empty();
  }
  KT_DEVICE void empty() { found.empty_into(into); }
};

KT_DEVICE void push_level(const Search& search, const Frontier& frontier, kt::FrontierBuilder& into) {
  Push push = {search.targets, search.claims, frontier.level, into, {}};
  const auto lists = [&](int64 i, bool) {
    const kt::AdjacencyList list = kt::adjacency_list(search.offsets, frontier.queue[i]);
    return list.end - list.begin < CHUNK ? list : kt::AdjacencyList{};
  };
  // Few adjacency lists get several lanes each; of many a warp takes 32, and its lanes search for their edges.
  // With SHARED_LISTS the lanes search in the first case too, so that no lane waits for a longer list.
  const int32 width = kt::lanes_per_list(kt::n_threads(), frontier.n_queued);  // lanes that share a list
  const int32 at_once = SHARED_LISTS && width >= 4 ? WARP / width : WARP;
  if (width >= 4 && !SHARED_LISTS)
    kt::edges_by_virtual_warp(search.targets, kt::whole_grid(), frontier.n_queued, width, lists, push);
  else
    kt::edges_by_discovery<UNROLL>(search.targets, kt::whole_grid(), frontier.n_queued, true, lists, push, at_once);

  // Then the chunks of long lists, each by a team of CHUNK_WARPS warps.
  const kt::Teams teams(CHUNK_WARPS);
  for (int64 i = teams.mine(); i < frontier.n_chunks; i += teams.how_many()) {
    const kt::AdjacencyList list = kt::chunk_of<CHUNK>(search.offsets, frontier.chunks[i]);
    kt::edges_of_list<UNROLL>(search.targets, teams.team(), list, push);
  }
  push.empty();
}

// Builds the bitmaps of the vertices reached so far and of those reached in this level.
KT_DEVICE void draw_bitmaps(const Search& search, int32 level, uint32* visited, uint32* front) {
  const int64 n_words = (search.n_vertices + 31) / 32;
  for (int64 word = kt::warp_id(); word < n_words; word += kt::n_warps()) {
    const int64 v = word * 32 + kt::lane();
    // Bits beyond the last vertex count as visited.
    const int32 at = v < search.n_vertices ? kt::level_of(kt::racy_load(search.claims + v)) : level + 1;
    const uint32 reached = kt::ballot(ALL_LANES, at != kt::UNREACHED);
    const uint32 in_level = kt::ballot(ALL_LANES, at == level);
    if (kt::lane() == 0) {
      visited[word] = reached;
      front[word] = in_level;
    }
  }
}

// Claims the unvisited vertices that have a neighbor in `front`, and draws them in `next`. Returns how many this lane
// claimed; `into.edges` takes their edges.
KT_DEVICE int64 pull_level(const Search& search, int32 level, uint32* visited, const uint32* front, uint32* next,
                           kt::FrontierBuilder& into) {
  const int64 n_words = (search.n_vertices + 31) / 32;
  int64 vertices = 0;
  for (int64 word = kt::warp_id(); word < n_words; word += kt::n_warps()) {
    const uint32 before = visited[word];
    uint32 claimed = 0;
    if (before != ALL_LANES) {
      const vertex_t v = static_cast<vertex_t>(word * 32 + kt::lane());
      const kt::AdjacencyList list =
          before >> kt::lane() & 1 ? kt::AdjacencyList{} : kt::adjacency_list(search.in_offsets, v);
      // Adjacency lists are sorted, so the first hit is the smallest predecessor.
      const vertex_t u =
          kt::first_hit(search.in_targets, list, PATIENCE, [=](vertex_t of) { return front[of / 32] >> of % 32 & 1; });
      const bool is_claimed = u != kt::NO_PREDECESSOR;
      if (is_claimed) {
        search.claims[v] = kt::claim_of(level + 1, u);
        into.edges += kt::degree_of(search.offsets, v);
        ++vertices;
      }
      claimed = kt::ballot(ALL_LANES, is_claimed);
    }
    kt::warp_barrier(ALL_LANES);  // all lanes have read the word
    if (kt::lane() == 0) {
      next[word] = claimed;
      if (claimed) visited[word] = before | claimed;
    }
  }
  return vertices;
}

// Appends the vertices of a bitmap to the queue.
KT_DEVICE void list_bitmap(int64 n_vertices, const uint32* front, kt::FrontierBuilder& into) {
  const int64 n_words = (n_vertices + 31) / 32;
  kt::LocalQueue found;
  for (int64 word = kt::warp_id(); word < n_words; word += kt::n_warps()) {
    if (front[word] >> kt::lane() & 1) found.push(static_cast<vertex_t>(word * 32 + kt::lane()));
    if (kt::any(ALL_LANES, found.is_full())) found.empty_into(into);
  }
  found.empty_into(into);
}

// Adds the counts of a block's threads to the next state.
KT_DEVICE void publish(kt::LoopState* next, int64 vertices, int64 edges, int64* sums) {
  vertices = kt::sum_through(vertices);
  edges = kt::sum_through(edges);
  if (kt::lane() == WARP - 1 && edges) {
    kt::atomic_add(sums, vertices);
    kt::atomic_add(sums + 1, edges);
  }
  kt::block_barrier();
  const int32 thread = kt::thread_in_block();
  if (thread < 2 && sums[thread]) {
    kt::atomic_add(thread == 0 ? &next->vertices : &next->edges, sums[thread]);
    sums[thread] = 0;
  }
}

// Replaces the frontier by the next one, which begins in the queue where this one ends.
KT_DEVICE void advance(Frontier& frontier, const kt::LoopState& prev) {
  frontier.level = static_cast<int32>(prev.level);
  frontier.queue += frontier.n_queued;
  frontier.n_queued = prev.queued;
  frontier.chunks += frontier.n_chunks;
  frontier.n_chunks = prev.chunks;
  frontier.vertices = prev.queued + prev.vertices;
  frontier.edges = prev.edges;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(KT_BOUNDS) bfs_persistent(const PersistentArgs args) {
  KT_SHARED(kt::LoopState, prev, [1]);
  KT_SHARED(int64, sums, [2]);
  kt::claim_t* const claims =
      PREDECESSORS ? reinterpret_cast<kt::claim_t*>(args.packed) : reinterpret_cast<kt::claim_t*>(args.distance);
  const int64 n_vertices = args.n_vertices;
  const Search search = {args.offsets, args.targets, args.in_offsets, args.in_targets, n_vertices, claims};
  const int64 n_words = (n_vertices + 31) / 32;
  uint32* const visited = args.bitmaps;
  uint32* front = args.bitmaps + n_words;
  uint32* next_front = args.bitmaps + 2 * n_words;
  uint32* const arrived = args.arrived;
  const kt::LoopStates states = {args.states};
  const int32 thread = kt::thread_in_block();
  const kt::Trace trace = {args.trace};
  const auto trace_iteration = [&](kt::IterationKind iteration, const Frontier& of) {
    if (TRACE && kt::thread_id() == 0) trace.add(trace.now(), iteration, of.level, of.vertices, of.edges);
  };

  if (thread < 2) sums[thread] = 0;
  Frontier frontier = {0, args.queue, 0, args.chunks};
  int64 unexplored = args.n_edges;
  bool is_pulling = false, has_pulled = args.in_offsets == nullptr;
  for (int32 iteration = 0;; ++iteration) {
    // Read the state that the last iteration left, and the frontier that it describes.
    kt::LoopStates::copy(prev[0], states.read(iteration), thread);
    kt::block_barrier();
    advance(frontier, prev[0]);
    unexplored -= prev->walked;

    // Stop if nothing is left, or every target is reached.
    if (frontier.vertices == 0 || frontier.level >= args.last_level) break;
    if (args.n_target_vertices) {
      const bool is_missing = kt::is_one_unreached(claims, args.target_vertices, args.n_target_vertices);
      kt::grid_barrier(arrived);  // every block has read the claims before a thread makes more
      if (!is_missing) break;
    }

    // Prepare the state that this iteration writes, and clear that of the next one.
    kt::LoopState& next = states.written(iteration);
    kt::LoopStates::clear(states.cleared(iteration), kt::thread_id());
    kt::FrontierBuilder into = {args.offsets, frontier.queue + frontier.n_queued, frontier.chunks + frontier.n_chunks,
                                &next};
    int64 vertices = 0, level = frontier.level + 1, walked = frontier.edges;

    // Either go back from the bitmap to the queue, which searches no level, or search one.
    if (is_pulling && frontier.vertices < n_vertices / BETA) {
      trace_iteration(kt::LIST, frontier);
      list_bitmap(n_vertices, front, into);
      is_pulling = false;
      level = frontier.level;
      walked = 0;
    } else {
      if (!has_pulled && frontier.edges > unexplored / ALPHA) {
        trace_iteration(kt::DRAW, frontier);
        draw_bitmaps(search, frontier.level, visited, front);
        is_pulling = has_pulled = true;
        kt::grid_barrier(arrived);
      }
      trace_iteration(is_pulling ? kt::PULL : kt::PUSH, frontier);
      if (is_pulling) {
        vertices = pull_level(search, frontier.level, visited, front, next_front, into);
        uint32* const written = next_front;
        next_front = front;
        front = written;
      } else {
        push_level(search, frontier, into);
      }
    }

    // Publish the state; the barrier lets all blocks read the same one.
    if (kt::thread_id() == 0) {
      next.level = level;
      next.walked = walked;
    }
    publish(&next, vertices, into.edges, sums);
    kt::grid_barrier(arrived);
  }

  // Unpack the claims into distances and predecessors.
  trace_iteration(kt::LAST_PASS, frontier);
  if (PREDECESSORS)
    for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
      const kt::claim_t claim = claims[v];
      args.distance[v] = kt::level_of(claim);
      args.predecessor[v] = static_cast<vertex_t>(static_cast<int32>(claim & 0xffffffffu));
      if (CLEANS_UP) claims[v] = static_cast<kt::claim_t>(-1);  // the next search begins without claims
    }

  trace_iteration(kt::END, frontier);
  if (kt::thread_id() == 0) {
    args.outcome->levels = frontier.level;
    args.outcome->is_stopped = frontier.vertices > 0;
  }
}
