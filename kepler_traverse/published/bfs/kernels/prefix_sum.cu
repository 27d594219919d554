// Builds the next queue by a prefix sum over all vertices.
//
// One thread per frontier vertex visits its neighbors and writes their distances. Then three launches
// follow: count the vertices at the new level in each tile; sum the counts in one block; write the
// vertices of each tile after those of the tiles before. The queue is therefore sorted, and shared
// memory does not limit its length.
//
// Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, section 3.7 and figure 15.
// Harris, Sengupta, Owens. Parallel prefix sum (scan) with CUDA. GPU Gems 3, 2007.
#include <kt/advance.cuh>
#include <kt/bfs_visit.cuh>

#include "block_scan.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_prefix_visit(const offset_t* offsets, const vertex_t* targets, const vertex_t* frontier, int64 n_frontier,
                     int32 level, int32* distance, vertex_t* predecessor) {
  const kt::Reach reach = {level, distance, predecessor};
  kt::edges_by_thread({offsets, targets}, kt::Queue{frontier, n_frontier},
                      [=](vertex_t u, offset_t, vertex_t v) { reach.visit(u, v); });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_prefix_count(const int32* distance, int64 n_vertices, int32 level, int64 tile, int64* sums) {
  for (int64 first = kt::block_id() * tile; first < n_vertices; first += kt::n_blocks() * tile) {
    const int64 end = first + tile < n_vertices ? first + tile : n_vertices;
    int64 sum = 0;
    for (int64 v = first; v < end; v += BLOCK) {
      const int64 mine = v + kt::thread_in_block();
      sum += kt::block_count(mine < end && kt::load_constant(distance + mine) == level);
    }
    if (kt::thread_in_block() == 0) sums[first / tile] = sum;
  }
}

// One block. Each sum becomes the sum of the tiles before it, and counters[0] that of all tiles.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_prefix_sum(int64 n_tiles, int64* sums, int64* counters) {
  KT_SHARED(int64, warp_sums, [BLOCK / WARP]);
  int64 before = 0;
  for (int64 first = 0; first < n_tiles; first += BLOCK) {
    const int64 tile = first + kt::thread_in_block();
    const int64 value = tile < n_tiles ? sums[tile] : 0;
    const kt::Sums<int64> found = kt::sum_through_block(value, warp_sums);
    if (tile < n_tiles) sums[tile] = before + found.through - value;
    before += found.total;
  }
  if (kt::thread_in_block() == 0) counters[0] = before;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_prefix_list(const int32* distance, int64 n_vertices, int32 level, int64 tile, const int64* sums, int64 capacity,
                    vertex_t* next) {
  KT_SHARED(int32, warp_sums, [BLOCK / WARP]);
  for (int64 first = kt::block_id() * tile; first < n_vertices; first += kt::n_blocks() * tile) {
    const int64 end = first + tile < n_vertices ? first + tile : n_vertices;
    int64 before = kt::load_constant(sums + first / tile);
    for (int64 v = first; v < end; v += BLOCK) {
      const int64 mine = v + kt::thread_in_block();
      const int32 flag = mine < end && kt::load_constant(distance + mine) == level ? 1 : 0;
      const kt::Sums<int32> found = kt::sum_through_block(flag, warp_sums);
      const int64 place = before + found.through - 1;
      if (flag && place < capacity) next[place] = static_cast<vertex_t>(mine);
      before += found.total;
    }
  }
}
