// One push level of a BFS: every frontier vertex claims its unreached neighbors.
//
// kt::Reach::claim uses one compare-and-swap per unreached neighbor, so a vertex enters the next
// queue exactly once. Its predecessor is the smallest of its frontier neighbors, whatever the order of
// threads: each of them visits the vertex in this level, and an atomic minimum keeps the smallest.
//
//   bfs_push_thread       thread-mapped: one thread per frontier vertex
//   bfs_push_warp         warp-mapped: one warp per frontier vertex
//   bfs_count_unreached   counts targets that are not reached yet
//   bfs_list_level        lists a level from the distances
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
  int64 n_frontier;
  int32 level;  // of the vertices that this launch discovers
  int64 capacity;
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  int64* counters;
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

// Counts the targets that are not within so many hops, into counters[1]. UNREACHED is larger than all.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_count_unreached(const int64* target_vertices, int64 n_target_vertices, int32 hops, const int32* distance,
                        int64* counters) {
  for (int64 i = kt::thread_id(); i < n_target_vertices; i += kt::n_threads()) {
    const int32 there = kt::load_constant(distance + kt::load_constant(target_vertices + i));
    if (static_cast<uint32>(there) > static_cast<uint32>(hops)) kt::count(counters + 1);
  }
}

// Queues the vertices of one level, each of them once, after their queue overflowed.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_list_level(const int32* distance, int64 n_vertices, int32 level,
                                                                   int64 capacity, vertex_t* queue, int64* counter) {
  const kt::Appender to = {queue, capacity, counter};
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads())
    if (kt::load_constant(distance + v) == level) to.append(static_cast<vertex_t>(v));
}
