// Reductions of the values of a source, in reduction blocks of PIECE values. Lane i of a warp holds the
// HELD values i, i + 32, i + 64, ... And loops of a thread block over a slice of the values.
//
// Compile-time constant:
//   PIECE   values per reduction block
#pragma once

#include <kt/csr.cuh>

namespace kt {

constexpr int32 HELD = PIECE / WARP;
constexpr int32 AT_ONCE = 8;

KT_DEVICE int64 lesser(int64 a, int64 b) { return a < b ? a : b; }
KT_DEVICE int64 larger(int64 a, int64 b) { return a < b ? b : a; }

KT_DEVICE int64 n_pieces_of(int64 n) { return (n + PIECE - 1) / PIECE; }

// Stored edges of the vertices first to end - 1 that are reached; `bits`: which of this lane's vertices are.
KT_DEVICE int64 edges_of_piece(const offset_t* offsets, int64 first, int64 end, uint32 bits) {
  const int32 n_reached = reduce_add(ALL_LANES, count_lanes(bits));
  if (n_reached == end - first)  // most often: then two offsets tell
    return lane() == 0 ? load_constant(offsets + end) - load_constant(offsets + first) : 0;
  int64 edges = 0;
  for (; bits; bits &= bits - 1) {
    const int64 v = first + first_lane(bits) * WARP + lane();
    edges += load_constant(offsets + v + 1) - load_constant(offsets + v);
  }
  return edges;
}

// Calls take for this thread's values of a slice, with AT_ONCE loads in flight.
template <typename T, typename Take>
KT_DEVICE void walk(const T* row, int64 first, int64 end, T none, const Take& take) {
  for (int64 from = first + thread_in_block(); from < end; from += AT_ONCE * BLOCK) {
    T held[AT_ONCE];
#pragma unroll
    for (int32 j = 0; j < AT_ONCE; ++j)
      held[j] = from + j * BLOCK < end ? load_streaming(row + from + j * BLOCK) : none;
#pragma unroll
    for (int32 j = 0; j < AT_ONCE; ++j) take(held[j]);
  }
}

}  // namespace kt
