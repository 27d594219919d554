// Edges on shortest paths, by given distances: those of which the length makes up the distance between their ends.
//
// Sums are rounded as the search rounded them, and compared as integers, so the answers are exact. An edge that adds
// nothing is not tight here: its ends are equally far, and no order says which is first.
//
// Compile-time constants:
//   HOP_BYTES   bytes per hop count; 0 if distances are weighted, of type weight_t
#pragma once

#include <kt/csr.cuh>
#include <kt/float_order.cuh>

namespace kt {

// Distances as integers in their order.
#if HOP_BYTES
using distance_t = Signed<HOP_BYTES>::type;
using distance_key = int32;
KT_DEVICE distance_key key_of_distance(distance_t hops) { return hops; }
KT_DEVICE bool is_reached(distance_key hops) { return hops != UNREACHED; }
#else
using distance_t = weight_t;
using distance_key = key_of<weight_t>;
KT_DEVICE distance_key key_of_distance(distance_t distance) { return to_ordered(distance); }
KT_DEVICE bool is_reached(distance_key key) { return key < INFINITE; }
KT_DEVICE int64 add_rounded(int64 a, int64 b) {
  return static_cast<int64>(static_cast<uint64>(a) + static_cast<uint64>(b));
}
KT_DEVICE double to_double(float distance) { return widened(distance); }
KT_DEVICE double to_double(double distance) { return distance; }
KT_DEVICE double to_double(int64 distance) { return static_cast<double>(distance); }
#endif

// A distance that is reached.
KT_DEVICE double length_of(distance_key key) {
#if HOP_BYTES
  return static_cast<double>(key);
#else
  return to_double(from_ordered<weight_t>(key));
#endif
}

struct Distances {
  const distance_t* of_source;

  KT_DEVICE distance_key operator[](vertex_t v) const { return key_of_distance(load_constant(of_source + v)); }

  // Whether the edge e between vertices of these distances is tight.
  KT_DEVICE static bool is_tight(distance_key from, [[maybe_unused]] const weight_t* weights,
                                 [[maybe_unused]] offset_t e, distance_key to) {
#if HOP_BYTES
    return is_reached(from) && from + 1 == to;
#else
    if (from >= to || !is_reached(to)) return false;
    return to_ordered(add_rounded(from_ordered<weight_t>(from), load_constant(weights + e))) == to;
#endif
  }
};

// The distances from the i-th of several sources, each `pitch` after those of the one before.
KT_DEVICE Distances distances_of(const uint8* rows, int64 pitch, int64 i) {
  return {reinterpret_cast<const distance_t*>(rows) + i * pitch};
}

}  // namespace kt
