// Reductions of the values of a source, in reduction blocks of REDUCTION_BLOCK values. Lane i of a warp holds the
// VALUES_PER_LANE values i, i + 32, i + 64, ... And loops of a thread block over a tile of the values.
//
// Compile-time constant:
//   REDUCTION_BLOCK   values per reduction block
#pragma once

#include <kt/csr.cuh>
#include <kt/float_order.cuh>

namespace kt {

constexpr int32 VALUES_PER_LANE = REDUCTION_BLOCK / WARP;
constexpr int32 IN_FLIGHT = 8;

KT_DEVICE int64 lesser(int64 a, int64 b) { return a < b ? a : b; }
KT_DEVICE int64 larger(int64 a, int64 b) { return a < b ? b : a; }

// The number of reduction blocks of n values.
KT_DEVICE int64 reduction_blocks_of(int64 n) { return (n + REDUCTION_BLOCK - 1) / REDUCTION_BLOCK; }

// Stored edges of the vertices first to end - 1 that are reached; `bits`: which of this lane's vertices are.
KT_DEVICE int64 edges_of_reduction_block(const offset_t* offsets, int64 first, int64 end, uint32 bits) {
  const int32 n_reached = reduce_add(ALL_LANES, count_lanes(bits));
  if (n_reached == end - first)  // most often; then two offsets suffice
    return lane() == 0 ? load_constant(offsets + end) - load_constant(offsets + first) : 0;
  int64 edges = 0;
  for (; bits; bits &= bits - 1) edges += degree_of(offsets, first + first_lane(bits) * WARP + lane());
  return edges;
}

// Two sums that have one order.
struct DistanceSums {
  double total, harmonic;
};

KT_DEVICE int64 sum_of(int64 a, int64 b) { return a + b; }
KT_DEVICE double sum_of(double a, double b) { return add_rounded(a, b); }
KT_DEVICE DistanceSums sum_of(DistanceSums a, DistanceSums b) {
  return {add_rounded(a.total, b.total), add_rounded(a.harmonic, b.harmonic)};
}

// Sums the VALUES_PER_LANE values of a lane by halves; `of(i)` is the i-th. Recursive from the end, so that few sums
// wait for others.
template <typename T, int32 FIRST = 0, int32 STEP = 1, typename Of>
KT_DEVICE T folded(const Of& of) {
  if constexpr (STEP == VALUES_PER_LANE) {
    return of(FIRST);
  } else {
    const T one = folded<T, FIRST, 2 * STEP>(of);
    return sum_of(one, folded<T, FIRST + STEP, 2 * STEP>(of));
  }
}

// Sums the values of all lanes by halves. The result is that of lane 0.
template <typename T>
KT_DEVICE T folded_over_lanes(T mine) {
  for (int32 half = WARP / 2; half > 0; half /= 2) mine = sum_of(mine, shuffle_down(ALL_LANES, mine, half));
  return mine;
}

// Statistics of the distances of some vertices of a source, as distance_stats.cu describes them.
struct DistanceRecord {
  static constexpr int32 N_WORDS = 6;
  DistanceSums sums;
  int64 reached, lowest, highest, edges;

  KT_DEVICE void store(int64* words) const {
    words[0] = bits_of(sums.total);
    words[1] = bits_of(sums.harmonic);
    words[2] = reached;
    words[3] = lowest;
    words[4] = highest;
    words[5] = edges;
  }
};

// Calls take for this thread's values of a tile, `first` to `end`, with IN_FLIGHT loads in flight. It also takes `none`
// in place of values behind the end.
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
