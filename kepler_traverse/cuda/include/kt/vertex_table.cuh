// A set of vertices in shared memory: SLOTS words, a power of two, a constant that the
// compiler is given. A vertex lies at its slot or within PROBES behind it, and none is
// ever taken out, so that all who look for a vertex or put it in at the same time agree.
//
// A search keeps one for each of its last levels. In an undirected graph a neighbour of
// level L is of level L - 1, L or L + 1, so they tell whether it was found before, with
// no look at the memory of all vertices.
//
// Numbers of vertices must fit 32 bits; NO_VERTEX is none of them.
#pragma once

#include <kt/csr.cuh>

namespace kt {

static_assert((SLOTS & (SLOTS - 1)) == 0, "slots wrap around by a mask");

constexpr int32 NO_VERTEX = -1;
constexpr int32 PROBES = SLOTS < 32 ? SLOTS : 32;
constexpr int32 NO_SLOT = -1;

// Where a vertex lies: the middle bits are a slot, the upper ones whose table of several.
KT_DEVICE uint32 hash_of(vertex_t v) { return static_cast<uint32>(v) * 2654435761u; }
KT_DEVICE int32 slot_of(uint32 hash) { return static_cast<int32>(hash >> 10 & (SLOTS - 1)); }
KT_DEVICE int32 share_of(uint32 hash, int32 n_tables) { return static_cast<int32>((hash >> 26) % n_tables); }

enum Held { IS_NOT, IS, MAY_BE };

// Of a table that others may still put vertices in: what it held when it was looked at.
KT_DEVICE Held holds(const int32* slots, int32 slot, vertex_t v) {
  for (int32 probe = 0; probe < PROBES; ++probe) {
    const int32 held = racy_load(slots + ((slot + probe) & (SLOTS - 1)));
    if (held == static_cast<int32>(v)) return IS;
    if (held == NO_VERTEX) return IS_NOT;
  }
  return MAY_BE;
}

// The slot of a vertex that now is in the table, put there by this call or not; NO_SLOT
// where all of its slots are others', for everybody and from then on.
KT_DEVICE int32 put(int32* slots, int32 slot, vertex_t v, bool& is_new) {
  is_new = false;
  for (int32 probe = 0; probe < PROBES; ++probe) {
    const int32 at = (slot + probe) & (SLOTS - 1);
    const int32 held = compare_and_swap(slots + at, NO_VERTEX, static_cast<int32>(v));
    is_new = held == NO_VERTEX;
    if (is_new || held == static_cast<int32>(v)) return at;
  }
  return NO_SLOT;
}

}  // namespace kt
