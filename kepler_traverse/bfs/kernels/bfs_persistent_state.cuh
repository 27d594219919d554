// The state of a persistent BFS, shared by its two kernels (bfs/kernels: cluster, persistent).
//
// A vertex holds the smallest claim that was made on it: (level, predecessor) in one word, so
// that one atomic minimum decides both and the smallest predecessor stays, in any order of
// events. Without predecessors the word is the level alone. A level and a vertex share 64 bits:
// the host rejects graphs of 2^31 vertices or more.
//
// The frontier is a contiguous range of a queue. Every vertex enters the queue at most once, level after level.
// Adjacency lists of CHUNK edges or more are also listed in chunks.
//
// Compile-time constants:
//   PREDECESSORS   1: a claim holds a predecessor; 0: only a level
//   CHUNK          edges per chunk of a long adjacency list
#pragma once

#include <kt/advance.cuh>
#include <kt/triple_buffer.cuh>

namespace kt {

using claim_t = Unsigned<PREDECESSORS ? 8 : 4>::type;

KT_DEVICE claim_t claim_of(int32 level, vertex_t u) {
  return PREDECESSORS ? static_cast<claim_t>(static_cast<uint64>(level) << 32 | static_cast<uint32>(u))
                      : static_cast<claim_t>(level);
}
// UNREACHED where there is no claim: all bits are set then, those of NO_PREDECESSOR too.
KT_DEVICE int32 level_of(claim_t claim) {
  return static_cast<int32>(static_cast<uint64>(claim) >> (PREDECESSORS ? 32 : 0));
}

// What one level leaves for the next. Uniform across the grid after each barrier. The host reads the fields from
// here to allocate three of these.
struct LoopState {
  // The next frontier. All threads add to these.
  int64 queued;    // vertices in the queue
  int64 chunks;    // chunks of their long adjacency lists
  int64 vertices;  // vertices in the bitmap
  int64 edges;     // edges out of all of them
  // Edges out of the frontier before, and the level of the next one. The grid writes these from one thread.
  int64 walked;
  int64 level;
};
using LoopStates = TripleBuffer<LoopState>;

// Stores the next frontier and counts its edges.
struct FrontierBuilder {
  const offset_t* offsets;
  vertex_t* queue;  // from its first free place on
  uint64* chunks;   // (number of the chunk, vertex), likewise
  LoopState* next;
  int64 edges = 0;  // of the vertices that this thread stored

  KT_DEVICE int64 reserve(int64 n) const { return atomic_add(&next->queued, n); }

  KT_DEVICE void store(int64 place, vertex_t v) {
    queue[place] = v;
    const offset_t degree = degree_of(offsets, v);
    edges += degree;
    list_chunks<CHUNK>(v, degree, chunks, &next->chunks);
  }
};

// Whether a vertex of a list is unreached. All threads of a block call it, while no thread claims.
KT_DEVICE bool is_one_unreached(const claim_t* claims, const int64* target_vertices, int64 n_target_vertices) {
  bool is_missing = false;
  for (int64 i = thread_in_block(); i < n_target_vertices; i += BLOCK)
    is_missing |= level_of(claims[load_constant(target_vertices + i)]) == UNREACHED;
  return block_any(is_missing);
}

}  // namespace kt
