// Reductions of the values of a source, in reduction blocks of REDUCTION_BLOCK values. Lane i of a warp holds the
// VALUES_PER_LANE values i, i + 32, i + 64, ... And loops of a thread block over a tile of the values.
//
// Compile-time constant:
//   REDUCTION_BLOCK   values per reduction block
#pragma once

#include <kt/csr.cuh>

namespace kt {

constexpr int32 VALUES_PER_LANE = REDUCTION_BLOCK / WARP;
constexpr int32 IN_FLIGHT = 8;

KT_DEVICE int64 lesser(int64 a, int64 b) { return a < b ? a : b; }
KT_DEVICE int64 larger(int64 a, int64 b) { return a < b ? b : a; }

KT_DEVICE int64 reduction_blocks_of(int64 n) { return (n + REDUCTION_BLOCK - 1) / REDUCTION_BLOCK; }

// Stored edges of the vertices first to end - 1 that are reached; `bits`: which of this lane's vertices are.
KT_DEVICE int64 edges_of_reduction_block(const offset_t* offsets, int64 first, int64 end, uint32 bits) {
  const int32 n_reached = reduce_add(ALL_LANES, count_lanes(bits));
  if (n_reached == end - first)  // most often; then two offsets suffice
    return lane() == 0 ? load_constant(offsets + end) - load_constant(offsets + first) : 0;
  int64 edges = 0;
  for (; bits; bits &= bits - 1) {
    const int64 v = first + first_lane(bits) * WARP + lane();
    edges += load_constant(offsets + v + 1) - load_constant(offsets + v);
  }
  return edges;
}

// Calls take for this thread's values of a tile, with IN_FLIGHT loads in flight.
template <typename T, typename Take>
KT_DEVICE void walk(const T* values, int64 first, int64 end, T none, const Take& take) {
  for (int64 from = first + thread_in_block(); from < end; from += IN_FLIGHT * BLOCK) {
    T held[IN_FLIGHT];
#pragma unroll
    for (int32 j = 0; j < IN_FLIGHT; ++j)
      held[j] = from + j * BLOCK < end ? load_streaming(values + from + j * BLOCK) : none;
#pragma unroll
    for (int32 j = 0; j < IN_FLIGHT; ++j) take(held[j]);
  }
}

}  // namespace kt
