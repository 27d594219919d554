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

using kt::int32;
using kt::int64;

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_layer_push_thread(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, int64 n_vertices,
                          int32 level, int32* distance, vertex_t* predecessor, int64* counters) {
  const kt::Reach reach = {level, distance, predecessor};
  auto visit = [=](vertex_t u, offset_t, vertex_t v) {
    if (reach.claim(u, v)) kt::count(counters);
  };
  for (int64 i = kt::thread_id(); i < n_vertices; i += kt::n_threads()) {
    const vertex_t u = static_cast<vertex_t>(i);
    // No thread stores the last level any more.
    if (kt::racy_load(distance + u) == level - 1) kt::edges_of_thread(targets, kt::adjacency_list(offsets, u), visit);
  }
}

// `next`: null where vertices are counted only.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_pull_thread(const offset_t* __restrict__ in_offsets, const vertex_t* __restrict__ in_targets, int64 n_vertices,
                    int32 level, int64 capacity, int32* distance, vertex_t* predecessor, vertex_t* next,
                    int64* counters) {
  constexpr int32 ALONE = 0x7fffffff;  // edges; no lane is helped
  const kt::Appender queue = {next, capacity, counters};
  for (int64 first = kt::warp_id() * kt::WARP; first < n_vertices; first += kt::n_warps() * kt::WARP) {
    const int64 i = first + kt::lane();
    const vertex_t v = static_cast<vertex_t>(i);
    // Only this thread stores v's distance; others store the next level elsewhere, which is no hit.
    const bool is_unreached = i < n_vertices && kt::racy_load(distance + v) == kt::UNREACHED;
    const kt::AdjacencyList row = is_unreached ? kt::adjacency_list(in_offsets, v) : kt::AdjacencyList{};
    const vertex_t u =
        kt::first_hit(in_targets, row, ALONE, [=](vertex_t of) { return kt::racy_load(distance + of) == level - 1; });
    if (u == kt::NO_PREDECESSOR) continue;
    kt::racy_store(distance + v, level);
    if (predecessor) predecessor[v] = u;
    if (next)
      queue.append(v);
    else
      kt::count(counters);
  }
}
