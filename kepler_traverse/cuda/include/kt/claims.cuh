// The state of a BFS of which nothing returns to the host, between its two kernels.
//
// A vertex holds the smallest claim that came for it: (level, predecessor) in one
// word, so one atomic minimum decides both, and the smallest predecessor is kept in
// any order of events. Without predecessors the word is the level alone. A level and a
// vertex share 64 bits: the host takes no graph of 2^31 vertices or more.
//
// The frontier lies in a queue that every vertex enters at most once, level after
// level; rows of CHUNK edges and more are listed in pieces beside it. Counts tell all
// blocks, after a barrier, what the next frontier is. PREDECESSORS and CHUNK are
// constants that the compiler is given.
#pragma once

#include <kt/csr.cuh>

namespace kt {

using claim_t = Unsigned<PREDECESSORS ? 8 : 4>::type;

KT_DEVICE claim_t claim_of(int32 level, vertex_t u) {
  return PREDECESSORS ? static_cast<claim_t>(static_cast<uint64>(level) << 32 | static_cast<uint32>(u))
                      : static_cast<claim_t>(level);
}
// UNREACHED where no claim came: all bits are set then, those of NO_PREDECESSOR too.
KT_DEVICE int32 level_of(claim_t claim) {
  return static_cast<int32>(static_cast<uint64>(claim) >> (PREDECESSORS ? 32 : 0));
}

// Of the next frontier: vertices in the queue, pieces, vertices in a bitmap, edges out
// of all of them, its level; and the edges walked on the way to it.
enum Count { QUEUED, PIECES, VERTICES, EDGES, WALKED, LEVEL, N_COUNTS };

// Where the next frontier is gathered.
struct Gathering {
  const offset_t* offsets;
  vertex_t* queue;  // from its end on
  uint64* pieces;   // (piece, vertex), from their end on
  int64* counts;    // [N_COUNTS]
  int64 edges = 0;  // of what this thread stored

  KT_DEVICE int64 reserve(int64 n) const { return atomic_add(counts + QUEUED, n); }

  KT_DEVICE void store(int64 place, vertex_t v) {
    queue[place] = v;
    const offset_t degree = load_constant(offsets + v + 1) - load_constant(offsets + v);
    edges += degree;
    if (degree < CHUNK) return;
    const int64 n = (degree + CHUNK - 1) / CHUNK;
    const int64 first = atomic_add(counts + PIECES, n);
    for (int64 i = 0; i < n; ++i) pieces[first + i] = static_cast<uint64>(i) << 32 | static_cast<uint32>(v);
  }
};

// Whether a vertex of a list is unreached. All threads of a block come, while nobody claims.
KT_DEVICE bool is_one_unreached(const claim_t* claims, const int64* wanted, int64 n_wanted) {
  bool is_missing = false;
  for (int64 i = thread_in_block(); i < n_wanted; i += BLOCK)
    is_missing |= level_of(claims[load_constant(wanted + i)]) == UNREACHED;
  return block_any(is_missing);
}

}  // namespace kt
