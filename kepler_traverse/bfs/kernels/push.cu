// One push level of a BFS: every frontier vertex claims its unreached neighbors.
//
// kt::Reach::claim uses one compare-and-swap per unreached neighbor, so a vertex enters the next
// queue exactly once. Its predecessor is the smallest of its frontier neighbors, whatever the order of
// threads: each of them visits the vertex in this level, and an atomic minimum keeps the smallest.
//
//   bfs_push_thread       thread-mapped: one thread per frontier vertex
//   bfs_push_warp         warp-mapped: one warp per frontier vertex
//   bfs_count_unreached   counts targets that are not reached yet
//
// Frontier    a queue in global memory. If it overflows, counters[0] is above `capacity`
// Visited     the distances
//
// Reads:  the adjacency lists of the frontier.
// Writes: distances and predecessors of claimed vertices; the next queue, its size in counters[0].
//
// Sevilmis, Sivri, Aydin. CS406 Project: Parallelization of BFS. 2019, section 5.
#include <kt/advance.cuh>
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>

namespace {

struct ClaimAndQueue {
  kt::Reach reach;
  kt::Appender next;

  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    if (reach.claim(u, v)) next.append(v);
  }
};

}  // namespace

// What the host passes (bfs/gpu_steps.py).
struct PushArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* frontier;
  kt::int64 n_frontier;
  kt::int32 level;  // of the vertices that this launch discovers
  kt::int64 capacity;
  kt::int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  kt::int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_push_thread(const PushArgs args) {
  kt::edges_by_thread(
      {args.offsets, args.targets}, kt::Queue{args.frontier, args.n_frontier},
      ClaimAndQueue{{args.level, args.distance, args.predecessor}, {args.next, args.capacity, args.counters}});
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_push_warp(const PushArgs args) {
  kt::edges_by_warp(
      {args.offsets, args.targets}, kt::Queue{args.frontier, args.n_frontier},
      ClaimAndQueue{{args.level, args.distance, args.predecessor}, {args.next, args.capacity, args.counters}});
}

// Counts the targets that are still unreached, into counters[1].
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_count_unreached(const kt::int64* __restrict__ target_vertices, kt::int64 n_target_vertices,
                        const kt::int32* __restrict__ distance, kt::int64* counters) {
  for (kt::int64 i = kt::thread_id(); i < n_target_vertices; i += kt::n_threads())
    if (kt::load_constant(distance + kt::load_constant(target_vertices + i)) == kt::UNREACHED) kt::count(counters + 1);
}
