// What the turns of a search by near and far piles tell each other (near_far.cu): counts
// that are added up by all, the threshold, and how wide the next pile is; and where they
// put the vertices that they find. CHUNK, SMALL, SMALL_EDGES,
// SMALL_FAR, LOCAL, LIGHT, WARM_UP and TAIL are constants that the compiler is given.
#pragma once

#include <kt/labels.cuh>
#include <kt/local_queue.cuh>

namespace kt {

constexpr int32 VERTEX_BITS = 40;  // of a piece; the others say which one of its row it is

// What a turn tells the next, in three places: one is read, one written, one cleared.
// Those before STEP are added up by all, the others come from one thread.
enum Word {
  NEAR,    // vertices of the near queue,
  EDGES,   // their edges,
  PIECES,  // and pieces of their long rows
  FAR,     // vertices put on the far pile, beside
  GAP,     // after a split: how far the nearest of them lies below INFINITE
  STEP,    // turns that relaxed
  THRESHOLD,
  WIDTH,  // bits of what is added to it
  PILE,   // vertices that were on the far pile before
  SIDE,   // which of two holds it
  PHASE,  // thresholds so far
  PHASE_STEPS,
  PHASE_EDGES,  // walked since the last one
  WAS_FAR,      // how many the last split found
  N_WORDS
};

KT_DEVICE int64 far_size(const int64* told) { return told[PILE] + told[FAR]; }
KT_DEVICE bool is_over(const int64* told) { return told[NEAR] == 0 && far_size(told) == 0; }
KT_DEVICE bool is_small(const int64* told) {
  return told[NEAR] ? told[NEAR] <= SMALL && told[EDGES] <= SMALL_EDGES : far_size(told) <= SMALL_FAR;
}

struct Threshold {
  ordered_t key;
  weight_t width;
};

KT_DEVICE ordered_t beyond(ordered_t key, weight_t width) {
  return to_ordered(add_rounded(from_ordered<weight_t>(key), width));
}

// Steps that leave the device idle are too many, whatever work fewer cost; in those that
// fill it, work counts. The first piles say nothing: where degrees are high, frontiers
// of few edges grow by themselves. Where the far pile shrinks, a pile of fewer than TAIL
// edges is one of the last: what is left is little, and best taken in few turns.
KT_DEVICE Threshold raised(const int64* told) {
  const ordered_t key = static_cast<ordered_t>(told[THRESHOLD]);
  weight_t width = float_of(static_cast<ordered_t>(told[WIDTH]));
  if (told[GAP]) {
    // Where the width vanishes beside the distance, the nearest vertices make the pile.
    const ordered_t nearest = static_cast<ordered_t>(INFINITE - told[GAP]);
    const ordered_t next = beyond(nearest, width);
    return {next > nearest ? next : nearest + 1, width};
  }
  const bool is_light = told[PHASE] >= WARM_UP && told[PHASE_EDGES] < LIGHT * told[PHASE_STEPS];
  const bool is_last = far_size(told) < told[WAS_FAR] && told[PHASE_EDGES] < TAIL;
  if (is_light || is_last) width = add_rounded(width, width);
  return {beyond(key, width), width};
}

KT_DEVICE offset_t degree_of(const offset_t* offsets, vertex_t v) {
  return load_constant(offsets + v + 1) - load_constant(offsets + v);
}

// Lists the pieces of a long row.
KT_DEVICE void cut(vertex_t v, offset_t degree, uint64* pieces, int64* count) {
  if (degree < CHUNK) return;
  const int64 n = (degree + CHUNK - 1) / CHUNK;
  const int64 place = atomic_add(count, n);
  for (int64 i = 0; i < n; ++i) pieces[place + i] = static_cast<uint64>(i) << VERTEX_BITS | static_cast<uint64>(v);
}

// Puts vertices where the next turn looks for them; all lanes of a warp come.
template <typename Who>
struct Piles {
  const offset_t* offsets;
  int64* next;
  vertex_t* near;
  vertex_t* near_shared;  // the first SMALL, of few
  uint64* pieces;
  vertex_t* far;  // behind what is there
  int64 edges = 0, gap = 0;
  LocalQueue found_near = {}, found_far = {};

  KT_DEVICE void add(bool is_near, bool is_far, vertex_t v) {
    if (is_near) found_near.push(v);
    if (is_far) found_far.push(v);
    if (any(ALL_LANES, found_near.is_full() || found_far.is_full())) empty();
  }
  KT_DEVICE void put_near(int64 place, vertex_t v) {
    const offset_t degree = degree_of(offsets, v);
    edges += degree;
    if (Who::IS_SMALL && place < SMALL)
      near_shared[place] = v;
    else
      near[place] = v;
    if (!Who::IS_SMALL) cut(v, degree, pieces, next + PIECES);
  }
  // Called from every walk, and seldom: one copy of it.
  __device__ __attribute__((noinline)) void empty() {
    found_near.empty_into(
        LOCAL_QUEUE + 1, [&](int64 n) { return atomic_add(next + NEAR, n); },
        [&](int64 place, vertex_t v) { put_near(place, v); });
    found_far.empty_into(
        LOCAL_QUEUE + 1, [&](int64 n) { return atomic_add(next + FAR, n); },
        [&](int64 place, vertex_t v) { far[place] = v; });
  }
};

// Adds what threads have counted to what the next turn is told.
template <typename Who>
KT_DEVICE void publish(int64* next, bool has_split, int64 edges, int64 gap, int64* of_block) {
  int64* const to = Who::IS_SMALL ? next : of_block;
  const int32 most = 1 << 26;  // 32 of them fit, and so many are many
  const int32 of_warp = reduce_add(ALL_LANES, edges < most ? static_cast<int32>(edges) : most - 1);
  if (lane() == 0 && of_warp) atomic_add(to + EDGES, int64{of_warp});
  if (has_split) {
    for (int32 mask = 1; mask < WARP; mask *= 2) {
      const int64 other = shuffle_xor(ALL_LANES, gap, mask);
      if (other > gap) gap = other;
    }
    if (lane() == 0 && gap) atomic_max(to + GAP, gap);
  }
  if (Who::IS_SMALL) return;
  block_barrier();
  if (thread_in_block() == 0) {
    if (to[EDGES]) atomic_add(next + EDGES, to[EDGES]);
    if (to[GAP]) atomic_max(next + GAP, to[GAP]);
    to[EDGES] = to[GAP] = 0;
  }
}

// What a block lowered in a hop, to go on from in the next. A vertex lowered again is here
// again, and its older entry, which holds the distance of then, leads nowhere.
struct Lowered {
  vertex_t* vertices;
  ordered_t* keys;
  int32* size;

  KT_DEVICE bool store(vertex_t v, ordered_t key) const {
    const int32 place = atomic_add(size, 1);
    if (place >= LOCAL) return false;
    vertices[place] = v;
    keys[place] = key;
    return true;
  }
};

// The same of each hop: two are in use, and three sizes, as one is cleared.
struct Hops {
  vertex_t* vertices;
  ordered_t* keys;
  int32* sizes;
  KT_DEVICE Lowered of(int32 hop) const {
    return {vertices + hop % 2 * LOCAL, keys + hop % 2 * LOCAL, sizes + hop % 3};
  }
};

}  // namespace kt
