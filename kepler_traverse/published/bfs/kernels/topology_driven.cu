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
#include <kt/bfs_visit.cuh>

#include "advances.cuh"

// What the host passes (published/bfs/topology_driven.py).
struct ScanArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const vertex_t* sources;  // of all edges
  KT_NULLABLE const vertex_t* order;    // all vertices
  int64 n_vertices;
  int64 n_edges;
  int32 width;          // lanes per vertex
  offset_t defer_from;  // edges
  int32 queue_capacity;
  int32 level;  // of the vertices that are reached
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  int64* counters;
};

struct FlagsArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const uint8* visited;
  int64 n_vertices;
  uint8* frontier;
  uint8* updated;
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
};

namespace {

struct LevelVisit {
  kt::Reach reach;
  int64* counters;

  KT_DEVICE explicit LevelVisit(const ScanArgs& args)
      : reach{args.level, args.distance, args.predecessor}, counters(args.counters) {}

  // No thread stores the frontier's level any more, so a value that is out of date gives the same result.
  KT_DEVICE bool is_frontier(vertex_t u) const { return kt::racy_load(reach.distance + u) == reach.level - 1; }

  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    if (reach.visit(u, v)) kt::racy_store(counters, int64{1});
  }
};

template <typename List>
KT_DEVICE void scan_by_thread(const ScanArgs& args, List list) {
  const LevelVisit visit(args);
  for (int64 i = kt::thread_id(); i < list.size; i += kt::n_threads()) {
    const vertex_t u = list[i];
    if (visit.is_frontier(u)) kt::edges_of_thread(args.targets, kt::adjacency_list(args.offsets, u), visit);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_scan_level_thread(const ScanArgs args) {
  scan_by_thread(args, kt::Range{0, args.n_vertices});
}

// The same in the order of a list of all vertices (3.4, redirection).
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_scan_redirected_thread(const ScanArgs args) {
  scan_by_thread(args, kt::Queue{args.order, args.n_vertices});
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_scan_virtual_warp(const ScanArgs args) {
  const LevelVisit level_visitor(args);
  const offset_t* const offsets = args.offsets;
  kt::edges_by_virtual_warp(
      args.targets, kt::whole_grid(), args.n_vertices, args.width,
      [&](int64 i, bool) {
        const vertex_t u = static_cast<vertex_t>(i);
        return level_visitor.is_frontier(u) ? kt::adjacency_list(offsets, u) : kt::AdjacencyList{};
      },
      [&](bool valid, vertex_t u, offset_t e, vertex_t v) {
        if (valid) level_visitor(u, e, v);
      });
}

// Vertices of defer_from edges or more wait in shared memory until the block has scanned all of its vertices.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_scan_deferred(const ScanArgs args) {
  KT_DYNAMIC_SHARED(vertex_t, deferred);
  KT_SHARED(int32, n_deferred, [1]);
  const LevelVisit visit(args);
  if (kt::thread_in_block() == 0) n_deferred[0] = 0;
  kt::block_barrier();
  for (int64 first = static_cast<int64>(kt::block_id()) * BLOCK; first < args.n_vertices; first += kt::n_threads()) {
    const int64 i = first + kt::thread_in_block();
    if (i < args.n_vertices && visit.is_frontier(static_cast<vertex_t>(i))) {
      const kt::AdjacencyList list = kt::adjacency_list(args.offsets, static_cast<vertex_t>(i));
      // Checking the capacity and appending are two steps, so the queue counts as full unless every thread of the block
      // can append one more. A thread that loads a count which has grown meanwhile visits its edges at once, which is
      // equally right.
      if (list.end - list.begin < args.defer_from || kt::racy_load(n_deferred) > args.queue_capacity - BLOCK) {
        kt::edges_of_thread(args.targets, list, visit);
      } else {
        deferred[kt::atomic_add(n_deferred, 1)] = list.u;
      }
    }
    kt::block_barrier();
  }
  for (int32 i = kt::thread_in_block(); i < n_deferred[0]; i += BLOCK)
    kt::edges_of_thread(args.targets, kt::adjacency_list(args.offsets, deferred[i]), visit);
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_scan_edges(const ScanArgs args) {
  const LevelVisit visit(args);
  kt::edges_by_edge(args.sources, args.targets, args.n_edges, [&](vertex_t u, offset_t e, vertex_t v) {
    if (visit.is_frontier(u)) visit(u, e, v);
  });
}

// The frontier as flags. A vertex that is reached is flagged in `updated` only: if it were flagged in `frontier`, a
// thread that comes later in this launch would expand it in this level. The next launch moves it into the frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_scan_flags_thread(const FlagsArgs args) {
  const uint8* const visited = args.visited;
  uint8* const updated = args.updated;
  int32* const distance = args.distance;
  vertex_t* const predecessor = args.predecessor;
  for (int64 i = kt::thread_id(); i < args.n_vertices; i += kt::n_threads()) {
    if (!args.frontier[i]) continue;
    args.frontier[i] = 0;
    const int32 level = distance[i] + 1;
    const auto visit = [=](vertex_t u, offset_t, vertex_t v) {
      if (kt::load_constant(visited + v)) return;
      kt::racy_store(distance + v, level);
      kt::racy_store(updated + v, uint8{1});
      if (predecessor) kt::keep_smallest(predecessor + v, u);
    };
    kt::edges_of_thread(args.targets, kt::adjacency_list(args.offsets, static_cast<vertex_t>(i)), visit);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_scan_flags_advance(int64 n_vertices, uint8* visited, uint8* frontier, uint8* updated, int64* counters) {
  for (int64 i = kt::thread_id(); i < n_vertices; i += kt::n_threads()) {
    if (!updated[i]) continue;
    updated[i] = 0;
    frontier[i] = visited[i] = 1;
    kt::racy_store(counters, int64{1});
  }
}
