// The state of a near-far search (near_far.cu): the counters that one iteration leaves for the
// next, the choice of the next threshold, and the piles that receive the vertices found.
//
// Compile-time constants:
//   CHUNK         edges per chunk of a long adjacency list
//   SMALL         vertices of the near queue up to which one block runs an iteration
//   SMALL_EDGES   edges of the near queue up to which one block runs an iteration
//   SMALL_FAR     vertices of the far pile up to which one block splits it
//   LOCAL         vertices per block that a local iteration can list
//   LIGHT         edges per iteration below which the width doubles
//   WARM_UP       thresholds that are not judged by LIGHT
//   TAIL          edges between two thresholds below which a shrinking far pile doubles the width
#pragma once

#include <kt/thread_queue.cuh>
#include <kt/triple_buffer.cuh>

#include "packed_distance.cuh"

namespace kt {

constexpr int32 VERTEX_BITS = 40;  // of a chunk: the vertex; the bits above number the chunks of its adjacency list

struct Threshold {
  ordered_t key;
  weight_t width;
};

// Uniform across the grid after each barrier. All words are 64 bits wide (triple_buffer.cuh). The host reads the
// fields from here to allocate three of these.
struct LoopState {
  // All threads add to these.
  int64 near;    // vertices in the near queue
  int64 edges;   // their edges
  int64 chunks;  // chunks of their long adjacency lists
  int64 far;     // vertices that this iteration put on the far pile
  int64 gap;     // after a split: INFINITE minus the smallest distance on the far pile; else 0
  // One thread writes these.
  int64 step;         // iterations that relaxed edges
  int64 threshold;    // as a key
  int64 width;        // bits of the weight_t by which the next threshold is higher
  int64 far_before;   // vertices on the far pile before this iteration
  int64 side;         // which of the two far piles is in use
  int64 phase;        // thresholds so far
  int64 phase_steps;  // iterations since the last threshold
  int64 phase_edges;  // edges relaxed since then
  int64 last_split;   // size of the far pile before the last split

  KT_DEVICE int64 far_size() const { return far_before + far; }
  KT_DEVICE bool is_over() const { return near == 0 && far_size() == 0; }
  KT_DEVICE bool is_small() const { return near ? near <= SMALL && edges <= SMALL_EDGES : far_size() <= SMALL_FAR; }
  KT_DEVICE Threshold current() const {
    return {static_cast<ordered_t>(threshold), of_bits<weight_t>(static_cast<ordered_t>(width))};
  }
};
using LoopStates = TripleBuffer<LoopState>;

KT_DEVICE ordered_t beyond(ordered_t key, weight_t width) {
  return to_ordered(add_rounded(from_ordered<weight_t>(key), width));
}

// The threshold after `prev`, once its near queue is empty.
//
// The width doubles where iterations are too small to fill the device: then fewer iterations
// matter more than fewer relaxations. The first WARM_UP thresholds are not judged, since where
// degrees are high, frontiers of few edges grow without that. Where the far pile shrinks and a
// phase relaxed fewer than TAIL edges, little is left, and fewer iterations finish it sooner.
KT_DEVICE Threshold raised(const LoopState& prev) {
  const ordered_t key = prev.current().key;
  weight_t width = prev.current().width;
  if (prev.gap) {
    // The last split found nothing near: continue from the smallest distance on the far pile. Where the width vanishes
    // in rounding, the vertices at that distance alone are near.
    const ordered_t nearest = static_cast<ordered_t>(INFINITE - prev.gap);
    const ordered_t next = beyond(nearest, width);
    return {next > nearest ? next : nearest + 1, width};
  }
  const bool is_light = prev.phase >= WARM_UP && prev.phase_edges < LIGHT * prev.phase_steps;
  const bool is_last = prev.far_size() < prev.last_split && prev.phase_edges < TAIL;
  if (is_light || is_last) width = add_rounded(width, width);
  return {beyond(key, width), width};
}

KT_DEVICE offset_t degree_of(const offset_t* offsets, vertex_t v) {
  return load_constant(offsets + v + 1) - load_constant(offsets + v);
}

// Lists the chunks of a long adjacency list: CHUNK edges or more.
KT_DEVICE void list_chunks(vertex_t v, offset_t degree, uint64* chunks, int64* count) {
  if (degree < CHUNK) return;
  const int64 n = (degree + CHUNK - 1) / CHUNK;
  const int64 place = atomic_add(count, n);
  for (int64 i = 0; i < n; ++i) chunks[place + i] = static_cast<uint64>(i) << VERTEX_BITS | static_cast<uint64>(v);
}

// Queues the vertices that an iteration finds, for the next one. All lanes of a warp call it.
template <typename Scope>
struct Piles {
  const offset_t* offsets;
  LoopState* next;
  vertex_t* near;
  vertex_t* near_shared;  // the first SMALL, if one block runs the iteration
  uint64* chunks;
  vertex_t* far;  // from its first free place on
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
    if (Scope::IS_SMALL && place < SMALL)
      near_shared[place] = v;
    else
      near[place] = v;
    if (!Scope::IS_SMALL) list_chunks(v, degree, chunks, &next->chunks);
  }
  // Rare, and called from every advance: one copy of the code keeps the kernel small.
  __device__ __attribute__((noinline)) void empty() {
    found_near.empty_into(
        LOCAL_QUEUE + 1, [&](int64 n) { return atomic_add(&next->near, n); },
        [&](int64 place, vertex_t v) { put_near(place, v); });
    found_far.empty_into(
        LOCAL_QUEUE + 1, [&](int64 n) { return atomic_add(&next->far, n); },
        [&](int64 place, vertex_t v) { far[place] = v; });
  }
};

// What the threads of a block add up in shared memory before one of them adds it to the next state.
struct BlockSums {
  int64 edges;
  int64 gap;
  int64 farthest;  // key of the farthest target
};

// Adds the threads' counts to the next state.
template <typename Scope>
KT_DEVICE void publish(LoopState* next, bool has_split, int64 edges, int64 gap, BlockSums* sums) {
  int64* const to_edges = Scope::IS_SMALL ? &next->edges : &sums->edges;
  int64* const to_gap = Scope::IS_SMALL ? &next->gap : &sums->gap;
  // A warp's sum must fit 32 bits. A count limited here is far above every bound that it is compared with.
  const int32 max_edges = 1 << 26;
  const int32 of_warp = reduce_add(ALL_LANES, edges < max_edges ? static_cast<int32>(edges) : max_edges - 1);
  if (lane() == 0 && of_warp) atomic_add(to_edges, int64{of_warp});
  if (has_split) {
    for (int32 mask = 1; mask < WARP; mask *= 2) {
      const int64 other = shuffle_xor(ALL_LANES, gap, mask);
      if (other > gap) gap = other;
    }
    if (lane() == 0 && gap) atomic_max(to_gap, gap);
  }
  if (Scope::IS_SMALL) return;
  block_barrier();
  if (thread_in_block() == 0) {
    if (sums->edges) atomic_add(&next->edges, sums->edges);
    if (sums->gap) atomic_max(&next->gap, sums->gap);
    sums->edges = sums->gap = 0;
  }
}

// The vertices that a block improved in one local iteration, from which it continues in the next. A vertex
// improved again is listed again; its older entry, which holds the older distance, is skipped.
struct Improved {
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

// The lists of all local iterations: two lists that alternate, and three sizes, of which one is cleared.
struct LocalRounds {
  vertex_t* vertices;
  ordered_t* keys;
  int32* sizes;
  KT_DEVICE Improved of(int32 local_round) const {
    return {vertices + local_round % 2 * LOCAL, keys + local_round % 2 * LOCAL, sizes + local_round % 3};
  }
};

}  // namespace kt
