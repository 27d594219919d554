// Counts visits: each edge of the listed adjacency lists is visited once, and no warp visits more than its share.
#include "advance_balanced.cuh"

extern "C" __global__ void count_visits(const offset_t* offsets, const vertex_t* targets, const vertex_t* vertices,
                                        kt::int64 n, const offset_t* ends, kt::int32* visits, kt::int64* of_warp) {
  const auto rows = [=](kt::int64 i, bool) { return kt::adjacency_list(offsets, vertices[i]); };
  kt::edges_balanced(targets, kt::whole_grid(), n, ends, rows, [=](bool valid, vertex_t u, offset_t e, vertex_t v) {
    if (!valid) return;
    kt::atomic_add(visits + e, v == targets[e] && offsets[u] <= e && e < offsets[u + 1] ? 1 : 1000);
    kt::atomic_add(of_warp + kt::warp_id(), kt::int64{1});
  });
}
