// Prefix sums and searches within a warp, by shuffles: all its lanes call them. Prefix sums within a
// block, from those of its warps: all its threads call them.
//
// Busato, Bombieri. BFS-4K. IEEE TPDS 2015, sections 5.1 (figure 3) and 5.4 (figure 6).
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

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

// Sums over the threads of a block: up to this thread, and of all threads.
template <typename T>
struct Sums {
  T through, total;
};

// `of_warps`: shared memory, one word per warp. It can be used again when this returns.
template <typename T>
KT_DEVICE Sums<T> sum_through_block(T value, T* of_warps) {
  Sums<T> sums = {sum_through(value), 0};
  if (lane() == WARP - 1) of_warps[warp_in_block()] = sums.through;
  block_barrier();
  for (int32 warp = 0; warp < BLOCK / WARP; ++warp) {
    if (warp < warp_in_block()) sums.through += of_warps[warp];
    sums.total += of_warps[warp];
  }
  block_barrier();
  return sums;
}

// The first lane whose sum is greater than k; the last one where none is.
template <typename T>
KT_DEVICE int32 lane_past(T sum, T k) {
  int32 low = 0;
#pragma unroll
  for (int32 step = WARP / 2; step > 0; step /= 2)
    if (broadcast(ALL_LANES, sum, low + step - 1) <= k) low += step;
  return low;
}

}  // namespace kt
