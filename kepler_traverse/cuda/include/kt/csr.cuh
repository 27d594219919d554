// The graph as a kernel sees it, and the widths of its numbers.
//
// vertex_t, offset_t and, where edges have weights, weight_t come from the
// command line (-D). Edge positions are 64 bits wide everywhere.
#pragma once

#include <kt/integers.cuh>

namespace kt {

static_assert(sizeof(offset_t) == 8, "edge positions need 64 bits");

// Marks of "none", as in kepler_traverse._arrays. As an unsigned number -1 is
// the largest, so the minimum with any vertex is that vertex.
constexpr int32 UNREACHED = -1;
constexpr vertex_t NO_PREDECESSOR = -1;

struct Csr {
  const offset_t* offsets;
  const vertex_t* targets;
};

// Keep the smallest of the vertices that come for one place, NO_PREDECESSOR
// being larger than all. Most come too late, and a load costs less than an atomic;
// places only fall, so one too large to be true costs that atomic and no more.
KT_DEVICE void keep_smallest(vertex_t* place, vertex_t u) {
  using word = Unsigned<sizeof(vertex_t)>::type;
  if (static_cast<word>(u) < static_cast<word>(racy_load(place)))
    atomic_min(reinterpret_cast<word*>(place), static_cast<word>(u));
}

}  // namespace kt
