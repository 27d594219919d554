// The graph in CSR form, and the types of its numbers.
//
// Compile-time constants (-D): the types vertex_t, offset_t and, for weighted graphs, weight_t.
// Edge positions always have 64 bits.
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

// Integer types by their width in bytes.
template <int BYTES>
struct Unsigned;
template <>
struct Unsigned<4> {
  using type = uint32;
};
template <>
struct Unsigned<8> {
  using type = uint64;
};

template <int BYTES>
struct Signed;
template <>
struct Signed<1> {
  using type = signed char;
};
template <>
struct Signed<2> {
  using type = short;
};
template <>
struct Signed<4> {
  using type = int32;
};
template <>
struct Signed<8> {
  using type = int64;
};

static_assert(sizeof(offset_t) == 8, "edge positions need 64 bits");

// The values for "none", as in kepler_traverse._arrays. As an unsigned number -1 is the largest, so
// its minimum with any vertex is that vertex.
constexpr int32 UNREACHED = -1;
constexpr vertex_t NO_PREDECESSOR = -1;

struct Csr {
  const offset_t* offsets;
  const vertex_t* targets;
};

template <typename V>
KT_DEVICE offset_t degree_of(const offset_t* offsets, V v) {
  return load_constant(offsets + v + 1) - load_constant(offsets + v);
}

// The first number from low to high - 1 for which is(number) is true, as it is for all after it; high if there is none.
template <typename Is>
KT_DEVICE int64 first_where(int64 low, int64 high, Is is) {
  while (low < high) {
    const int64 middle = low + (high - low) / 2;
    if (is(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Stores the minimum of *place and u; NO_PREDECESSOR is larger than all vertices. Most calls change
// nothing, and a load costs less than an atomic. Values only fall, so a value that is out of date costs
// one more atomic and no error.
KT_DEVICE void keep_smallest(vertex_t* place, vertex_t u) {
  using word = Unsigned<sizeof(vertex_t)>::type;
  if (static_cast<word>(u) < static_cast<word>(racy_load(place)))
    atomic_min(reinterpret_cast<word*>(place), static_cast<word>(u));
}

}  // namespace kt
