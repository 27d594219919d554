// The state of a near-far search (near_far.cu): the counters that one iteration leaves for the
// next, the choice of the next threshold, and the piles that receive the vertices found.
//
// Compile-time constants:
//   CHUNK         edges per chunk of a long adjacency list
//   SMALL         vertices of the near queue up to which one block runs an iteration
//   SMALL_EDGES   edges of the near queue up to which one block runs an iteration
//   SMALL_FAR     vertices of the far pile up to which one block splits it
//   LOCAL         vertices that a block can list in a local round
//   LIGHT         mean number of edges per iteration below which the width doubles
//   WARM_UP       number of first thresholds to which LIGHT does not apply
//   TAIL          edges between two thresholds below which the width doubles if the far pile shrinks
#pragma once

#include <kt/advance.cuh>
#include <kt/thread_queue.cuh>
#include <kt/triple_buffer.cuh>

#include "packed_distance.cuh"

namespace kt {

// A chunk is one word: the vertex in the lower VERTEX_BITS, the number of the chunk in its adjacency list above them.
constexpr int32 VERTEX_BITS = 40;

struct Threshold {
  ordered_t key;
  weight_t width;
};

// Uniform across the grid after each barrier. All words are 64 bits wide (triple_buffer.cuh). The host parses this
// struct to allocate three of them.
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
  int64 width;        // bits of a weight_t: distance from this threshold to the next
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

KT_DEVICE ordered_t add_width(ordered_t key, weight_t width) {
  return to_ordered(add_rounded(from_ordered<weight_t>(key), width));
}

// The threshold that follows that of `prev`, whose near queue is empty.
//
// The width doubles if iterations are too small to fill the device: then fewer iterations matter
// more than fewer relaxations. The first WARM_UP thresholds are exempt, since small frontiers grow
// by themselves where degrees are high. The width also doubles if the far pile shrinks and fewer
// than TAIL edges were relaxed since the last threshold: little is left, and fewer iterations
// finish it sooner.
KT_DEVICE Threshold next_threshold(const LoopState& prev) {
  const ordered_t key = prev.current().key;
  weight_t width = prev.current().width;
  if (prev.gap) {
    // The last split found no near vertex: continue from the smallest distance on the far pile. If rounding absorbs the
    // width, only the vertices at that distance are near.
    const ordered_t nearest = static_cast<ordered_t>(INFINITE - prev.gap);
    const ordered_t next = add_width(nearest, width);
    return {next > nearest ? next : nearest + 1, width};
  }
  const bool is_light = prev.phase >= WARM_UP && prev.phase_edges < LIGHT * prev.phase_steps;
  const bool is_last = prev.far_size() < prev.last_split && prev.phase_edges < TAIL;
  if (is_light || is_last) width = add_rounded(width, width);
  return {add_width(key, width), width};
}

// Queues vertices for the next iteration. All lanes of a warp call add and flush together.
template <typename Scope>
struct Piles {
  const offset_t* offsets;
  LoopState* next;
  vertex_t* near;
  vertex_t* near_shared;  // for the first SMALL vertices, if one block runs the iteration
  uint64* chunks;
  vertex_t* far;  // the first free entry of the far pile
  int64 edges = 0, gap = 0;
  LocalQueue found_near = {}, found_far = {};

  KT_DEVICE void add(bool is_near, bool is_far, vertex_t v) {
    if (is_near) found_near.push(v);
    if (is_far) found_far.push(v);
    if (any(ALL_LANES, found_near.is_full() || found_far.is_full())) flush();
  }
  KT_DEVICE void store_near(int64 place, vertex_t v) {
    const offset_t degree = degree_of(offsets, v);
    edges += degree;
    if (Scope::IS_SMALL && place < SMALL)
      near_shared[place] = v;
    else
      near[place] = v;
    if (!Scope::IS_SMALL) list_chunks<CHUNK, VERTEX_BITS>(v, degree, chunks, &next->chunks);
  }
  // Not inlined: it is rare and called from every advance, and one copy of the code keeps the kernel small.
  __device__ __attribute__((noinline)) void flush() {
    found_near.empty_into(into([&](int64 n) { return atomic_add(&next->near, n); },
                               [&](int64 place, vertex_t v) { store_near(place, v); }));
    found_far.empty_into(
        into([&](int64 n) { return atomic_add(&next->far, n); }, [&](int64 place, vertex_t v) { far[place] = v; }));
  }
};

// Sums of a block, in shared memory. One thread adds them to the next state.
struct BlockSums {
  int64 edges;
  int64 gap;
  int64 farthest;  // key of the farthest target
};

// Adds the threads' counts to the next state.
template <typename Scope>
KT_DEVICE void add_counts(LoopState* next, bool has_split, int64 edges, int64 gap, BlockSums* sums) {
  int64* const to_edges = Scope::IS_SMALL ? &next->edges : &sums->edges;
  int64* const to_gap = Scope::IS_SMALL ? &next->gap : &sums->gap;
  // Limited, so that a warp's sum fits 32 bits. The limit is far above every bound that the count is compared with.
  const int32 max_edges = 1 << 26;
  const int32 warp_sum = reduce_add(ALL_LANES, edges < max_edges ? static_cast<int32>(edges) : max_edges - 1);
  if (lane() == 0 && warp_sum) atomic_add(to_edges, int64{warp_sum});
  if (has_split) {
    gap = largest_of_all(gap);
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

// The vertices that a block improved in one local round; the next one relaxes their edges. A vertex that is
// improved again is listed again. Its older entry holds a larger distance and is skipped.
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

// The lists of local rounds: two that alternate, and three sizes, of which one is read, one written, one cleared.
struct LocalRounds {
  vertex_t* vertices;
  ordered_t* keys;
  int32* sizes;
  KT_DEVICE Improved improved_in(int32 local_round) const {
    return {vertices + local_round % 2 * LOCAL, keys + local_round % 2 * LOCAL, sizes + local_round % 3};
  }
};

}  // namespace kt
