// Levels without a queue: every level looks at all vertices, or at all edges.
//
// A vertex belongs to the frontier if its distance is the level, or if its flag is set. A vertex is
// visited by one thread, by a virtual warp, or by one thread per edge. All threads that reach a vertex
// in a level store the same distance, so no claim is needed. Each of them sees it unreached or at the
// new level, and the smallest predecessor stays. counters[0] becomes 1 if any vertex was reached: the
// papers' `still_running`.
//
//   threads   see kt/advance.cuh       shared   deferred vertices (deferred only)
//   reads     all distances or flags, edges of the frontier    writes   reached vertices
//
// Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, sections 3 and 4 (figures 10 to 13, 17).
// Harish, Narayanan. HiPC 2007. Hong et al. PPoPP 2011. Jia et al. GPU Computing Gems, 2011.
#include <kt/advance.cuh>

namespace {

struct Claim {
  kt::int32 level;  // of what is reached
  kt::int32* distance;
  vertex_t* predecessor;  // null: not wanted
  kt::int64* counters;

  // No thread stores the frontier's level any more, so whatever is loaded here decides rightly.
  KT_DEVICE bool is_frontier(vertex_t u) const { return kt::racy_load(distance + u) == level - 1; }

  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    kt::int32 hops = kt::racy_load(distance + v);
    if (hops == kt::UNREACHED) {
      kt::racy_store(distance + v, level);
      kt::racy_store(counters, kt::int64{1});
      hops = level;
    }
    if (predecessor && hops == level) kt::keep_smallest(predecessor + v, u);
  }
};

template <typename List>
KT_DEVICE void scan_by_thread(kt::Csr graph, List list, Claim claim) {
  for (kt::int64 i = kt::thread_id(); i < list.size; i += kt::n_threads()) {
    const vertex_t u = list[i];
    if (claim.is_frontier(u)) kt::edges_of_thread(graph.targets, kt::adjacency_list(graph.offsets, u), claim);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_level_thread(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                          kt::int64 n_vertices, kt::int32 level, kt::int32* distance, vertex_t* predecessor,
                          kt::int64* counters) {
  scan_by_thread({offsets, targets}, kt::Range{0, n_vertices}, {level, distance, predecessor, counters});
}

// The same in the order of a list of all vertices (3.4, redirection).
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_redirected_thread(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                               const vertex_t* __restrict__ order, kt::int64 n_vertices, kt::int32 level,
                               kt::int32* distance, vertex_t* predecessor, kt::int64* counters) {
  scan_by_thread({offsets, targets}, kt::Queue{order, n_vertices}, {level, distance, predecessor, counters});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_virtual_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                          kt::int64 n_vertices, kt::int32 width, kt::int32 level, kt::int32* distance,
                          vertex_t* predecessor, kt::int64* counters) {
  const Claim claim{level, distance, predecessor, counters};
  kt::edges_by_virtual_warp(
      targets, kt::whole_grid(), n_vertices, width,
      [&](kt::int64 i, bool) {
        const vertex_t u = static_cast<vertex_t>(i);
        return claim.is_frontier(u) ? kt::adjacency_list(offsets, u) : kt::AdjacencyList{};
      },
      [&](bool valid, vertex_t u, offset_t e, vertex_t v) {
        if (valid) claim(u, e, v);
      });
}

// Vertices of defer_from edges and more wait in shared memory until the block has looked at all of its vertices.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_deferred(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, kt::int64 n_vertices,
                      offset_t defer_from, kt::int32 queue_capacity, kt::int32 level, kt::int32* distance,
                      vertex_t* predecessor, kt::int64* counters) {
  KT_DYNAMIC_SHARED(vertex_t, deferred);
  KT_SHARED(kt::int32, n_deferred, [1]);
  const Claim claim{level, distance, predecessor, counters};
  if (kt::thread_in_block() == 0) n_deferred[0] = 0;
  kt::block_barrier();
  for (kt::int64 first = static_cast<kt::int64>(kt::block_id()) * BLOCK; first < n_vertices; first += kt::n_threads()) {
    const kt::int64 i = first + kt::thread_in_block();
    if (i < n_vertices && claim.is_frontier(static_cast<vertex_t>(i))) {
      const kt::AdjacencyList row = kt::adjacency_list(offsets, static_cast<vertex_t>(i));
      // Full where not every thread of the block could still append one: checking and appending are two steps. Whoever
      // loads a count that has grown meanwhile walks the edges at once, which is as right.
      if (row.end - row.begin < defer_from || kt::racy_load(n_deferred) > queue_capacity - BLOCK) {
        kt::edges_of_thread(targets, row, claim);
      } else {
        deferred[kt::atomic_add(n_deferred, 1)] = row.u;
      }
    }
    kt::block_barrier();
  }
  for (kt::int32 i = kt::thread_in_block(); i < n_deferred[0]; i += BLOCK)
    kt::edges_of_thread(targets, kt::adjacency_list(offsets, deferred[i]), claim);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_edges(const vertex_t* __restrict__ sources, const vertex_t* __restrict__ targets, kt::int64 n_edges,
                   kt::int32 level, kt::int32* distance, vertex_t* predecessor, kt::int64* counters) {
  const Claim claim{level, distance, predecessor, counters};
  kt::edges_by_edge(sources, targets, n_edges, [&](vertex_t u, offset_t e, vertex_t v) {
    if (claim.is_frontier(u)) claim(u, e, v);
  });
}

// The frontier as flags. What is reached is flagged in `updated` alone, as a vertex whose thread comes late would else
// be taken for one of this level; the launch after this one makes it the frontier.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_flags_thread(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                          const kt::uint8* __restrict__ visited, kt::int64 n_vertices, kt::uint8* frontier,
                          kt::uint8* updated, kt::int32* distance, vertex_t* predecessor) {
  for (kt::int64 i = kt::thread_id(); i < n_vertices; i += kt::n_threads()) {
    if (!frontier[i]) continue;
    frontier[i] = 0;
    const kt::int32 level = distance[i] + 1;
    const auto reach = [=](vertex_t u, offset_t, vertex_t v) {
      if (kt::load_constant(visited + v)) return;
      kt::racy_store(distance + v, level);
      kt::racy_store(updated + v, kt::uint8{1});
      if (predecessor) kt::keep_smallest(predecessor + v, u);
    };
    kt::edges_of_thread(targets, kt::adjacency_list(offsets, static_cast<vertex_t>(i)), reach);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_flags_advance(kt::int64 n_vertices, kt::uint8* visited, kt::uint8* frontier, kt::uint8* updated,
                           kt::int64* counters) {
  for (kt::int64 i = kt::thread_id(); i < n_vertices; i += kt::n_threads()) {
    if (!updated[i]) continue;
    updated[i] = 0;
    frontier[i] = visited[i] = 1;
    kt::racy_store(counters, kt::int64{1});
  }
}
