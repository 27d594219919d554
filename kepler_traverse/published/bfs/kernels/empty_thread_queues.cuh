// Two more ways to empty the queues of threads (kt/thread_queue.cuh): reserving per block, and per thread.
//
// The caller provides `to` as for LocalQueue.
//
// Busato, Bombieri. BFS-4K. IEEE TPDS 2015, section 5.1.
#pragma once

#include <kt/thread_queue.cuh>

namespace kt {

// All threads of a block call it. Its warps add up their sizes in `block_sizes` (two words of shared memory, the first
// zero), and one call of reserve serves the block.
template <typename To>
KT_DEVICE void empty_by_block(LocalQueue& queue, To&& to, int64* block_sizes, int32 coalesced_from = LOCAL_QUEUE + 1) {
  int32 place = sum_through(queue.size);
  const int32 total = broadcast(ALL_LANES, place, WARP - 1);
  place -= queue.size;
  int64 warp_place = 0;
  if (lane() == 0 && total) warp_place = atomic_add(block_sizes, int64{total});
  warp_place = broadcast(ALL_LANES, warp_place, 0);
  block_barrier();
  if (thread_in_block() == 0) block_sizes[1] = block_sizes[0] ? to.reserve(block_sizes[0]) : 0;
  block_barrier();
  queue.write_from(block_sizes[1] + warp_place, place, total >= coalesced_from * WARP, to);
  queue.size = 0;
}

// Each thread reserves its own slots: the baseline for the other ways.
template <typename To>
KT_DEVICE void empty_by_thread(LocalQueue& queue, To&& to) {
  if (queue.size) queue.write_from(to.reserve(queue.size), 0, false, to);
  queue.size = 0;
}

}  // namespace kt
