// A queue in global memory to which many threads append.
//
// The lanes that append together reserve their slots with one atomic. The counter counts past the
// capacity, but nothing is written there. The host reads the counter and rejects a queue that
// overflowed, so no vertex is lost silently.
#pragma once

#include <kt/csr.cuh>

namespace kt {

struct Appender {
  vertex_t* vertices;
  int64 capacity;
  int64* counter;

  KT_DEVICE void append(vertex_t v) const { append(v, lanes_here()); }
  // The same for the given lanes, all of which append to this queue.
  KT_DEVICE void append(vertex_t v, uint32 lanes) const {
    const int32 leader = first_lane(lanes);
    int64 place = 0;
    if (lane() == leader) place = atomic_add(counter, count_lanes(lanes));
    place = broadcast(lanes, place, leader) + count_lanes(lanes & lanes_before());
    if (place < capacity) vertices[place] = v;
  }
};

// Counts the threads that call it, with one atomic for the lanes that call it together.
KT_DEVICE void count(int64* counter) {
  const uint32 lanes = lanes_here();
  if (lane() == first_lane(lanes)) atomic_add(counter, count_lanes(lanes));
}

}  // namespace kt
