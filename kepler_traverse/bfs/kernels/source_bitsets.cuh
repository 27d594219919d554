// Source bitsets: one per vertex, with one bit per source, in WORDS words of 32 bits.
//
// LANES lanes share one bitset. Each of them holds PART adjacent words of it, so that a warp
// reads ROWS_AT_ONCE bitsets with as few memory requests as they have sectors.
//
// Also bitmaps with one bit per vertex. A warp owns one word of a bitmap at a time.
//
// Compile-time constants, powers of two:
//   WORDS   words per bitset
//   LANES   lanes per bitset
#pragma once

#include <kt/csr.cuh>

namespace kt {

constexpr int32 PART = WORDS / LANES;
constexpr int32 ROWS_AT_ONCE = WARP / LANES;
static_assert(PART * LANES == WORDS && ROWS_AT_ONCE * LANES == WARP, "lanes share a row, and a warp, evenly");

KT_DEVICE int32 lane_in_row() { return lane() & (LANES - 1); }
KT_DEVICE int32 row_in_warp() { return lane() / LANES; }

struct alignas(PART < 4 ? 4 * PART : 16) Part {
  uint32 words[PART];

  KT_DEVICE void add(const Part& other) {
#pragma unroll
    for (int32 i = 0; i < PART; ++i) words[i] |= other.words[i];
  }
  KT_DEVICE Part without(const Part& other) const {
    Part left;
#pragma unroll
    for (int32 i = 0; i < PART; ++i) left.words[i] = words[i] & ~other.words[i];
    return left;
  }
  KT_DEVICE bool is_any() const {
    uint32 any_of_them = 0;
#pragma unroll
    for (int32 i = 0; i < PART; ++i) any_of_them |= words[i];
    return any_of_them != 0;
  }
};

// This lane's words of a bitset.
KT_DEVICE const Part& part_of(const uint32* rows, int64 row) {
  return reinterpret_cast<const Part*>(rows)[row * LANES + lane_in_row()];
}
// The same for bitsets that no thread writes during the launch.
KT_DEVICE Part constant_part_of(const uint32* rows, int64 row) {
  Part part;
  load_constant_words(rows + (row * LANES + lane_in_row()) * PART, part.words);
  return part;
}
KT_DEVICE Part& part_of(uint32* rows, int64 row) { return reinterpret_cast<Part*>(rows)[row * LANES + lane_in_row()]; }

// The union of the bitsets that the warp holds. All lanes of the warp call it.
KT_DEVICE void join_rows(Part& part) {
#pragma unroll
  for (int32 mask = LANES; mask < WARP; mask *= 2)
#pragma unroll
    for (int32 i = 0; i < PART; ++i) part.words[i] |= shuffle_xor(ALL_LANES, part.words[i], mask);
}

// Whether the predicate is true in a lane that shares this bitset. All lanes of the warp call it.
KT_DEVICE bool any_in_row(bool predicate) {
  const uint32 lanes = ballot(ALL_LANES, predicate);
  const uint32 of_row = LANES == WARP ? ALL_LANES : ((1u << (LANES % WARP)) - 1u) << (row_in_warp() * LANES);
  return (lanes & of_row) != 0;
}

// Adds bits to a bitset that other threads add to as well. Most bits are set already, and a load
// costs less than an atomic. Bits are only set: a bit that an old value lacks costs one atomic more.
KT_DEVICE bool add_shared(uint32* rows, int64 row, const Part& part) {
  uint32* const place = rows + row * WORDS + lane_in_row() * PART;
  bool is_new = false;
#pragma unroll
  for (int32 i = 0; i < PART; ++i) {
    if ((part.words[i] & ~racy_load(place + i)) == 0) continue;
    atomic_or(place + i, part.words[i]);
    is_new = true;
  }
  return is_new;
}

// Removes the lowest ROWS_AT_ONCE set bits. Returns the number of the one that the lanes of this
// bitset take, or -1 if fewer bits are set.
KT_DEVICE int32 take_bit(uint32& bits) {
  uint32 mine = bits;
  for (int32 i = 0; i < row_in_warp(); ++i) mine &= mine - 1;
  for (int32 i = 0; i < ROWS_AT_ONCE; ++i) bits &= bits - 1;
  return first_lane(mine);
}

KT_DEVICE bool has_bit(const uint32* bitmap, int64 v) { return (load_constant(bitmap + v / 32) >> (v % 32) & 1u) != 0; }

}  // namespace kt
