// Prefix sums over the threads of a block, from those of its warps.
#pragma once

#include <kt/scan.cuh>

namespace kt {

// The sum of the values of the threads up to this one, and that of all threads.
template <typename T>
struct Sums {
  T through, total;
};

// All threads of the block call it. `warp_sums`: shared memory, one word per warp; it can be used again when this
// returns.
template <typename T>
KT_DEVICE Sums<T> sum_through_block(T value, T* warp_sums) {
  Sums<T> sums = {sum_through(value), 0};
  if (lane() == WARP - 1) warp_sums[warp_in_block()] = sums.through;
  block_barrier();
  for (int32 warp = 0; warp < BLOCK / WARP; ++warp) {
    if (warp < warp_in_block()) sums.through += warp_sums[warp];
    sums.total += warp_sums[warp];
  }
  block_barrier();
  return sums;
}

}  // namespace kt
