// Source bitsets: one per vertex, with one bit per source, in WORDS words of 32 bits.
//
// LANES lanes share one bitset. Each of them holds WORDS_PER_LANE adjacent words of it, so that the
// loads of a warp, which reads BITSETS_PER_WARP bitsets at once, are coalesced.
//
// Bitmaps have one bit per vertex. A warp owns one word of a bitmap at a time.
//
// Compile-time constants, powers of two:
//   WORDS   words per bitset
//   LANES   lanes per bitset
#pragma once

#include <kt/csr.cuh>

namespace kt {

constexpr int32 WORDS_PER_LANE = WORDS / LANES;
constexpr int32 BITSETS_PER_WARP = WARP / LANES;
static_assert(WORDS_PER_LANE * LANES == WORDS && BITSETS_PER_WARP * LANES == WARP,
              "lanes share a bitset, and a warp, evenly");

KT_DEVICE int32 lane_in_bitset() { return lane() & (LANES - 1); }
KT_DEVICE int32 bitset_in_warp() { return lane() / LANES; }

struct alignas(WORDS_PER_LANE < 4 ? 4 * WORDS_PER_LANE : 16) LaneWords {
  uint32 words[WORDS_PER_LANE];

  KT_DEVICE void add(const LaneWords& other) {
#pragma unroll
    for (int32 i = 0; i < WORDS_PER_LANE; ++i) words[i] |= other.words[i];
  }
  KT_DEVICE LaneWords without(const LaneWords& other) const {
    LaneWords left;
#pragma unroll
    for (int32 i = 0; i < WORDS_PER_LANE; ++i) left.words[i] = words[i] & ~other.words[i];
    return left;
  }
  KT_DEVICE bool is_any() const {
    uint32 united = 0;
#pragma unroll
    for (int32 i = 0; i < WORDS_PER_LANE; ++i) united |= words[i];
    return united != 0;
  }
};

// This lane's words of a bitset.
KT_DEVICE const LaneWords& lane_words(const uint32* bitsets, int64 v) {
  return reinterpret_cast<const LaneWords*>(bitsets)[v * LANES + lane_in_bitset()];
}
// The same for bitsets that no thread writes during the launch.
KT_DEVICE LaneWords constant_lane_words(const uint32* bitsets, int64 v) {
  LaneWords mine;
  load_constant_words(bitsets + (v * LANES + lane_in_bitset()) * WORDS_PER_LANE, mine.words);
  return mine;
}
KT_DEVICE LaneWords& lane_words(uint32* bitsets, int64 v) {
  return reinterpret_cast<LaneWords*>(bitsets)[v * LANES + lane_in_bitset()];
}

// The union of the bitsets that the warp holds. All lanes of the warp call it.
KT_DEVICE void join_bitsets(LaneWords& mine) {
#pragma unroll
  for (int32 mask = LANES; mask < WARP; mask *= 2)
#pragma unroll
    for (int32 i = 0; i < WORDS_PER_LANE; ++i) mine.words[i] |= shuffle_xor(ALL_LANES, mine.words[i], mask);
}

// Whether the predicate is true in a lane that shares this bitset. All lanes of the warp call it.
KT_DEVICE bool any_in_bitset(bool predicate) {
  const uint32 lanes = ballot(ALL_LANES, predicate);
  const uint32 of_bitset = LANES == WARP ? ALL_LANES : ((1u << (LANES % WARP)) - 1u) << (bitset_in_warp() * LANES);
  return (lanes & of_bitset) != 0;
}

// Adds bits to a bitset that other threads add to as well. Most bits are set already, and a load
// costs less than an atomic. Bits are only set, so a value that is out of date costs one more atomic and
// no error. Returns whether this lane set a bit, or may have.
KT_DEVICE bool add_shared(uint32* bitsets, int64 v, const LaneWords& mine) {
  uint32* const place = bitsets + v * WORDS + lane_in_bitset() * WORDS_PER_LANE;
  bool is_new = false;
#pragma unroll
  for (int32 i = 0; i < WORDS_PER_LANE; ++i) {
    if ((mine.words[i] & ~racy_load(place + i)) == 0) continue;
    atomic_or(place + i, mine.words[i]);
    is_new = true;
  }
  return is_new;
}

// Removes the lowest BITSETS_PER_WARP set bits. Returns the number of the one that the lanes of this
// bitset take, or -1 if fewer bits are set.
KT_DEVICE int32 take_bit(uint32& bits) {
  uint32 mine = bits;
  for (int32 i = 0; i < bitset_in_warp(); ++i) mine &= mine - 1;
  for (int32 i = 0; i < BITSETS_PER_WARP; ++i) bits &= bits - 1;
  return first_lane(mine);
}

KT_DEVICE bool has_bit(const uint32* bitmap, int64 v) { return (load_constant(bitmap + v / 32) >> (v % 32) & 1u) != 0; }

}  // namespace kt
