// Top-down (push) and bottom-up (pull) levels. The distance tells which vertices are in the last level.
//
//   layer_push   every vertex of the last level visits its neighbors; discovered vertices are counted
//   pull         every unreached vertex looks for a neighbor in the last level and stops at the
//                first, which is the smallest, since adjacency lists are sorted. The vertex is counted
//                or queued
//
// Both use one thread per vertex.
//
// Sevilmis, Sivri, Aydin. CS406 Project: Parallelization of BFS. 2019, section 5 and
// appendices 3, 4 and 6.
#include <kt/advance.cuh>
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>

// What the host passes (published/bfs/hybrid_and_spmv.py). `level` is that of the vertices that are discovered.
struct LayerArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const offset_t* in_offsets;
  const vertex_t* in_targets;
  int64 n_vertices;
  int32 level;
  int64 capacity;  // of next
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  KT_NULLABLE vertex_t* next;  // null: vertices are counted only
  int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_layer_push_thread(const LayerArgs args) {
  const kt::Reach reach = {args.level, args.distance, args.predecessor};
  int64* const counters = args.counters;
  auto visit = [=](vertex_t u, offset_t, vertex_t v) {
    if (reach.claim(u, v)) kt::count(counters);
  };
  for (int64 i = kt::thread_id(); i < args.n_vertices; i += kt::n_threads()) {
    const vertex_t u = static_cast<vertex_t>(i);
    // No thread stores the last level any more.
    if (kt::racy_load(args.distance + u) == args.level - 1)
      kt::edges_of_thread(args.targets, kt::adjacency_list(args.offsets, u), visit);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_pull_thread(const LayerArgs args) {
  constexpr int32 ALONE = 0x7fffffff;  // edges that a lane searches without the help of the warp: all
  const kt::Appender queue = {args.next, args.capacity, args.counters};
  int32* const distance = args.distance;
  const int32 last_level = args.level - 1;
  for (int64 first = kt::warp_id() * WARP; first < args.n_vertices; first += kt::n_warps() * WARP) {
    const int64 i = first + kt::lane();
    const vertex_t v = static_cast<vertex_t>(i);
    // Only this thread stores v's distance. Others store the next level elsewhere, which is no hit.
    const bool is_unreached = i < args.n_vertices && kt::racy_load(distance + v) == kt::UNREACHED;
    const kt::AdjacencyList list = is_unreached ? kt::adjacency_list(args.in_offsets, v) : kt::AdjacencyList{};
    const vertex_t u = kt::first_hit(args.in_targets, list, ALONE,
                                     [=](vertex_t source) { return kt::racy_load(distance + source) == last_level; });
    if (u == kt::NO_PREDECESSOR) continue;
    kt::racy_store(distance + v, args.level);
    if (args.predecessor) args.predecessor[v] = u;
    if (args.next)
      queue.append(v);
    else
      kt::count(args.counters);
  }
}
