// Hop counts of 16 or 32 bits that also serve as the claims of a BFS. UNREACHED: no claim yet.
#pragma once

#include <kt/csr.cuh>

namespace kt {

// Stores the hop count of a vertex if it has none. Exactly one thread gets true. Compare-and-swap
// works on words of 32 bits, so the hop counts of a source begin and end at a word boundary.
template <typename hop_t>
KT_DEVICE bool claim_hops(hop_t* distance, vertex_t v, int32 hops) {
  constexpr int32 HOPS_PER_WORD = 4 / sizeof(hop_t);
  constexpr uint32 MASK = 0xffffffffu >> (32 - 8 * sizeof(hop_t));
  int32* const word = reinterpret_cast<int32*>(distance) + v / HOPS_PER_WORD;
  const int32 shift = static_cast<int32>(v % HOPS_PER_WORD) * 16;
  for (;;) {
    const int32 before = racy_load(word);
    if ((static_cast<uint32>(before) >> shift & MASK) != MASK) return false;
    const uint32 others = static_cast<uint32>(before) & ~(MASK << shift);
    const int32 after = static_cast<int32>(others | (static_cast<uint32>(hops) & MASK) << shift);
    if (compare_and_swap(word, before, after) == before) return true;
  }
}

}  // namespace kt
