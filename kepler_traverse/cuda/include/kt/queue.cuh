// A queue that many threads append to.
//
// The lanes that arrive together take their places with one atomic. The counter
// keeps counting past the capacity while nothing is written there; the host
// reads it anyway and refuses to go on, so nothing is lost in silence.
#pragma once

#include <kt/csr.cuh>

namespace kt {

struct Appender {
  vertex_t* vertices;
  int64 capacity;
  int64* counter;

  KT_DEVICE void append(vertex_t v) const { append(v, lanes_here()); }
  // By these lanes, all of which come, to this queue and no other.
  KT_DEVICE void append(vertex_t v, uint32 lanes) const {
    const int32 leader = first_lane(lanes);
    int64 place = 0;
    if (lane() == leader) place = atomic_add(counter, count_lanes(lanes));
    place = broadcast(lanes, place, leader) + count_lanes(lanes & lanes_before());
    if (place < capacity) vertices[place] = v;
  }
};

// Count the threads that come here, with one atomic for those that come together.
KT_DEVICE void count(int64* counter) {
  const uint32 lanes = lanes_here();
  if (lane() == first_lane(lanes)) atomic_add(counter, count_lanes(lanes));
}

}  // namespace kt
