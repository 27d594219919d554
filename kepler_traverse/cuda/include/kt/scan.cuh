// Sums, prefix sums and searches within a warp, by shuffles: all its lanes call them.
//
// Busato, Bombieri. BFS-4K. IEEE TPDS 2015, sections 5.1 (figure 3) and 5.4 (figure 6).
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

// The sum, and the largest, of the values of all lanes, in every lane.
template <typename T>
KT_DEVICE T sum_of_all(T value) {
  for (int32 mask = 1; mask < WARP; mask *= 2) value += shuffle_xor(ALL_LANES, value, mask);
  return value;
}
template <typename T>
KT_DEVICE T largest_of_all(T value) {
  for (int32 mask = 1; mask < WARP; mask *= 2) {
    const T other = shuffle_xor(ALL_LANES, value, mask);
    if (other > value) value = other;
  }
  return value;
}

// Sum of the values of the lanes up to this one.
template <typename T>
KT_DEVICE T sum_through(T value) {
#pragma unroll
  for (int32 by = 1; by < WARP; by *= 2) {
    const T before = shuffle_up(ALL_LANES, value, by);
    if (lane() >= by) value += before;
  }
  return value;
}

// The first lane whose sum is greater than k; the last lane if there is none.
template <typename T>
KT_DEVICE int32 lane_past(T sum, T k) {
  int32 low = 0;
#pragma unroll
  for (int32 step = WARP / 2; step > 0; step /= 2)
    if (broadcast(ALL_LANES, sum, low + step - 1) <= k) low += step;
  return low;
}

}  // namespace kt
