// Queues of a block in shared memory, of `queue_capacity` vertices each: one per warp (W-frontiers)
// or one per block. Concatenated they are the block's queue (B-frontier), for which one atomic
// reserves slots in the queue of the grid (G-frontier). A vertex that exceeds the capacity goes
// directly to the queue of the grid.
//
// Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010, section 3.2.
#pragma once

#include <kt/frontier_queue.cuh>

namespace kt {

struct BlockQueues {
  vertex_t* slots;  // [n_queues * queue_capacity]
  int32* sizes;     // [n_queues], zero at first; they count past the capacity
  int64* starts;    // [n_queues + 1]
  int32 n_queues;   // no more than a warp has lanes
  int32 queue_capacity;
  Appender grid;

  KT_DEVICE void append(vertex_t v) const {
    const int32 queue = warp_in_block() % n_queues;
    const int32 place = atomic_add(sizes + queue, 1);
    if (place < queue_capacity)
      slots[queue * queue_capacity + place] = v;
    else
      grid.append(v);
  }

  // Empties the queues. All threads of the block call it; a block barrier must follow before the next append.
  // `to` is as in kt/thread_queue.cuh; one thread calls reserve.
  template <typename To>
  KT_DEVICE void empty(To&& to) const {
    block_barrier();
    if (thread_in_block() == 0) {
      int64 total = 0;
      for (int32 queue = 0; queue < n_queues; ++queue) {
        starts[queue] = total;
        total += size(queue);
      }
      starts[n_queues] = total ? to.reserve(total) : 0;
    }
    block_barrier();
    const bool is_one = n_queues == 1;
    for (int32 queue = is_one ? 0 : warp_in_block(); queue < n_queues; queue += BLOCK / WARP) {
      const int64 first = starts[n_queues] + starts[queue];
      const int32 n = size(queue);
      for (int32 i = is_one ? thread_in_block() : lane(); i < n; i += is_one ? BLOCK : WARP)
        to.store(first + i, slots[queue * queue_capacity + i]);
    }
    block_barrier();
    if (thread_in_block() < n_queues) sizes[thread_in_block()] = 0;
  }

 private:
  KT_DEVICE int32 size(int32 queue) const { return sizes[queue] < queue_capacity ? sizes[queue] : queue_capacity; }
};

}  // namespace kt
