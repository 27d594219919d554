// A queue per thread, in registers, which its warp empties into a queue that many threads share.
//
// The lanes add up their sizes by shuffles, one lane reserves slots for all, and each lane writes to
// its own slots. A warp therefore needs one atomic instead of one per vertex.
//
// The caller provides an object `to`, such as an Appender (frontier_queue.cuh), with
//   reserve(n)        reserves n places and returns the first
//   store(place, v)   stores v, or reports that the capacity is exceeded
//
// Busato, Bombieri. BFS-4K. IEEE TPDS 2015, sections 5.1 and 5.6 (figure 9); H-BF. IEEE TPDS 2015, section 5.1.
#pragma once

#include <kt/csr.cuh>
#include <kt/scan.cuh>

namespace kt {

constexpr int32 LOCAL_QUEUE = 16;  // vertices; more than the published K7 of 10

// Such an object of two functions.
template <typename Reserve, typename Store>
struct Into {
  Reserve reserve;
  Store store;
};
template <typename Reserve, typename Store>
KT_DEVICE Into<Reserve, Store> into(Reserve reserve, Store store) {
  return {reserve, store};
}

struct LocalQueue {
  vertex_t vertices[LOCAL_QUEUE];
  int32 size = 0;

  KT_DEVICE void push(vertex_t v) { vertices[size++] = v; }
  KT_DEVICE bool is_full() const { return size == LOCAL_QUEUE; }

  // All lanes of a warp call it. If they hold `coalesced_from` vertices or more on average, stores are coalesced up to
  // the size of the shortest queue.
  template <typename To>
  KT_DEVICE void empty_into(To&& to, int32 coalesced_from = LOCAL_QUEUE + 1) {
    // At most one vertex per lane: the places follow from the lanes that have one.
    if (all(ALL_LANES, size <= 1)) {
      const uint32 lanes = ballot(ALL_LANES, size == 1);
      if (lanes == 0) return;
      int64 first = 0;
      if (lane() == 0) first = to.reserve(count_lanes(lanes));
      first = broadcast(ALL_LANES, first, 0);
      if (size) to.store(first + count_lanes(lanes & lanes_before()), vertices[0]);
    } else {
      int32 place = sum_through(size);
      const int32 total = broadcast(ALL_LANES, place, WARP - 1);
      place -= size;
      int64 first = 0;
      if (lane() == 0) first = to.reserve(total);
      first = broadcast(ALL_LANES, first, 0);
      write_from(first, place, total >= coalesced_from * WARP, to);
    }
    size = 0;
  }

  // Writes the queue of this lane at first + place, or those of the warp with coalesced stores.
  template <typename To>
  KT_DEVICE void write_from(int64 first, int32 place, bool coalesced, To&& to) {
    int32 written = 0;
    if (coalesced) {
      const int32 shortest = reduce_min(ALL_LANES, size);
      for (; written < shortest; ++written) to.store(first + written * WARP + lane(), vertices[written]);
      place += (WARP - lane()) * shortest;
    }
    for (; written < size; ++written) to.store(first + place++, vertices[written]);
  }
};

}  // namespace kt
