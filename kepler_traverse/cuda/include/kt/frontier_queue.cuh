// A queue in global memory to which many threads append.
//
// The lanes that append together reserve their slots with one atomic. The counter counts past the
// capacity, but nothing is written there. The host reads the counter and rejects a queue that
// overflowed, so no vertex is lost silently.
#pragma once

#include <kt/csr.cuh>

namespace kt {

// Appends vertices to a queue of some capacity, of which the counter has the size.
struct Appender {
  vertex_t* vertices;
  int64 capacity;
  int64* counter;

  // Appends a vertex of each lane that calls it.
  KT_DEVICE void append(vertex_t v) const { append(v, lanes_here()); }
  // The same for the given lanes, all of which append to this queue.
  KT_DEVICE void append(vertex_t v, uint32 lanes) const {
    const int32 leader = first_lane(lanes);
    int64 place = 0;
    if (lane() == leader) place = atomic_add(counter, count_lanes(lanes));
    place = broadcast(lanes, place, leader) + count_lanes(lanes & lanes_before());
    store(place, v);
  }
  KT_DEVICE int64 reserve(int64 n) const { return atomic_add(counter, n); }
  KT_DEVICE void store(int64 place, vertex_t v) const {
    if (place < capacity) vertices[place] = v;
  }
};

// Reserves a place for each lane with `has`, with one atomic per warp, all lanes of which call it.
template <typename T>
KT_DEVICE T place_of(bool has, T* size) {
  const uint32 lanes = ballot(ALL_LANES, has);
  if (lanes == 0) return 0;
  T first = 0;
  if (lane() == 0) first = atomic_add(size, static_cast<T>(count_lanes(lanes)));
  return broadcast(ALL_LANES, first, 0) + static_cast<T>(count_lanes(lanes & lanes_before()));
}

// Counts the threads that call it, with one atomic for the lanes that call it together.
KT_DEVICE void count(int64* counter) {
  const uint32 lanes = lanes_here();
  if (lane() == first_lane(lanes)) atomic_add(counter, count_lanes(lanes));
}

}  // namespace kt
