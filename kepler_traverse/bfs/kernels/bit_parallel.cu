// Bit-parallel BFS: one level of up to 1,024 searches at once, with one bit per source.
//
// A source bitset has one bit for each source; there is one per vertex.
//
// Frontier    bitsets and bitmaps (one bit per vertex):
//   front       the sources that reached the vertex in the last level
//   in_front    bitmap: the vertices whose front is not empty
//   found       the sources that reach the vertex in this level
//   is_found    bitmap: the vertices whose found is not empty
//   gathered    bits that several threads add to: all bits of a push level; in a pull level those of
//               adjacency lists of CHUNK edges or more. bfs_bit_parallel_finalize_warp moves them to
//               found. Zero between levels
//   touched     bitmap: the vertices whose gathered is not zero
//   alive       one bitset: the sources whose frontier is not empty. Other searches are over
// Visited
//   seen        the sources that have reached the vertex
//   done        bitmap: the vertices that all sources in `alive` have reached. They never change again
// Hop counts
//   planes      plane j holds the sources whose hop count of the vertex has bit j
//
//   counters    [VERTICES, EDGES, MISSING, CHUNKS] of the next frontier
//
// A pull visits all vertices, or those of a segment, whose edges are copied to the device for it
// (bfs/multi_source/bit_parallel_streamed.py). Pulls of several segments may run at once: a bitmap word belongs
// to one of them.
//
// A warp owns 32 vertices, so that it writes bitmaps without atomics. LANES of its lanes share one
// bitset. A pull level tests the bit of in_front before it reads a bitset, and stops at a vertex once
// all sources in `alive` have reached it.
//
// Reads:  per edge of a pull level, a vertex number, a bit and, on a hit, a bitset.
// Writes: seen and found of the vertices that change, and those planes whose bit is set in the
//         number of the level.
//
// Compile-time constants:
//   BLOCK          threads per block
//   WORDS, LANES   words, and lanes, per bitset (source_bitsets.cuh)
//   CHUNK          edges per chunk of a long adjacency list
//
// Then, Kaufmann, Chirigati, Hoang-Vu, Pham, Kemper, Neumann, Vo. The more the merrier: efficient multi-source
// graph traversal. PVLDB 8(4), 2014 (MS-BFS).
#include <kt/advance.cuh>

#include "source_bitsets.cuh"

// What the host passes (bfs/multi_source/bit_parallel_gpu.py).
struct LevelArgs {
  const offset_t* offsets;
  const offset_t* in_offsets;
  const vertex_t* in_targets;
  int64 n_vertices;
  const uint64* hub_chunks;  // of the lists of CHUNK edges or more; see kt/advance.cuh
  int64 n_hub_chunks;
  const uint32* front;
  const uint32* in_front;
  const uint32* alive;
  int32 level;
  int32 keeps_found;  // 1 after a pull: the bits of is_found stay
  uint32* seen;
  uint32* found;
  uint32* is_found;
  uint32* done;
  uint32* gathered;
  uint32* touched;
  KT_NULLABLE uint32* planes;
  uint32* alive_next;
  int64* counters;
  // Of a pull: the words of bitmaps whose vertices it visits, and the position of in_targets[0] among all edges.
  int64 first_word;
  int64 end_word;
  int64 first_edge;
};

struct StartArgs {
  const offset_t* offsets;
  const int64* sources;
  int64 n_sources;
  uint32* seen;
  uint32* front;
  uint32* in_front;
  int64* counters;
};

struct PushArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const uint64* chunks;  // of the frontier's adjacency lists
  int64 capacity;
  const int64* counters;
  const uint32* front;
  const uint32* seen;
  const uint32* done;
  uint32* gathered;
  uint32* touched;
};

namespace {

enum Counters { VERTICES, EDGES, MISSING, CHUNKS };

constexpr int64 MIN_READ = 16;  // edges in the 64 bytes that a read over the bus takes at least

// Stores the bits that a level finds, and counts the next frontier. All lanes of a warp call it.
struct Finalizer {
  const LevelArgs args;  // by value, which needs fewer registers
  kt::LaneWords alive, alive_next = {};
  int64 vertices = 0, edges = 0;
  uint32 is_found = 0, is_done = 0;  // of the warp's 32 vertices

  // `bits`: the sources that have reached vertex `bit` of the word; `before`: those that had before this level.
  // `has`: whether these lanes hold a vertex.
  KT_DEVICE void finalize(bool has, int64 word, int32 bit, const kt::LaneWords& bits, const kt::LaneWords& before) {
    const kt::LaneWords discovered = bits.without(before);
    const int64 v = word * 32 + bit;
    const bool is_new = kt::any_in_bitset(has && discovered.is_any());
    const bool is_missing = kt::any_in_bitset(has && alive.without(bits).is_any());
    if (has && is_new) {
      kt::lane_words(args.seen, v) = bits;
      kt::lane_words(args.found, v) = discovered;
      alive_next.add(discovered);
      if (args.planes)  // hop counts are needed
        for (int32 plane = 0; args.level >> plane; ++plane)
          if (args.level >> plane & 1) kt::lane_words(args.planes, plane * args.n_vertices + v).add(discovered);
    }
    const bool is_counted = has && kt::lane_in_bitset() == 0;
    if (is_counted && is_new) {
      ++vertices;
      edges += kt::degree_of(args.offsets, v);
    }
    is_found |= kt::reduce_or(ALL_LANES, is_counted && is_new ? 1u << bit : 0u);
    is_done |= kt::reduce_or(ALL_LANES, is_counted && !is_missing ? 1u << bit : 0u);
  }

  KT_DEVICE void add_counts() {
    kt::join_bitsets(alive_next);
    if (kt::bitset_in_warp() == 0) kt::add_shared(args.alive_next, 0, alive_next);
    vertices = kt::sum_of_all(vertices);
    edges = kt::sum_of_all(edges);
    if (kt::lane() || vertices == 0) return;
    kt::atomic_add(args.counters + VERTICES, vertices);
    kt::atomic_add(args.counters + EDGES, edges);
  }
};

// The positions of a list in an array that begins with edge `first`.
KT_DEVICE kt::AdjacencyList shifted(kt::AdjacencyList list, offset_t first) {
  list.begin -= first;
  list.end -= first;
  return list;
}

// The union of the bitsets of visited vertices.
struct Gather {
  const uint32* front;
  kt::LaneWords bits;

  // Takes up to IN_FLIGHT lanes out of `hits` for each bitset, and adds the front of the vertex v of each of these
  // lanes. `is_shared`: all bitsets of the warp take lanes out of the same `hits`, instead of one each.
  KT_DEVICE void add(uint32& hits, vertex_t v, bool is_shared) {
    constexpr int32 IN_FLIGHT = 4;
    vertex_t u[IN_FLIGHT];
    bool has[IN_FLIGHT];
#pragma unroll
    for (int32 i = 0; i < IN_FLIGHT; ++i) {
      const int32 from = is_shared ? kt::take_bit(hits) : kt::first_lane(hits);
      if (!is_shared) hits &= hits - 1;
      has[i] = from >= 0;
      u[i] = kt::broadcast(ALL_LANES, v, has[i] ? from : 0);
    }
#pragma unroll
    for (int32 i = 0; i < IN_FLIGHT; ++i)
      if (has[i]) bits.add(kt::constant_lane_words(front, u[i]));
  }
};

}  // namespace

// Vertices without incoming edges, and bits beyond the last vertex, are done from the start.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_idle_warp(const offset_t* in_offsets, int64 n_vertices, uint32* idle) {
  for (int64 word = kt::warp_id(); word < (n_vertices + 31) / 32; word += kt::n_warps()) {
    const int64 v = word * 32 + kt::lane();
    const bool is_idle = v >= n_vertices || kt::load_constant(in_offsets + v) == kt::load_constant(in_offsets + v + 1);
    const uint32 bits = kt::ballot(ALL_LANES, is_idle);
    if (kt::lane() == 0) idle[word] = bits;
  }
}

// Sets the bits of the sources and counts the first frontier. Each vertex counts once, however often it is a source.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_bit_parallel_start(const StartArgs args) {
  for (int64 i = kt::thread_id(); i < args.n_sources; i += kt::n_threads()) {
    const int64 s = kt::load_constant(args.sources + i);
    const uint32 bit = 1u << (i % 32);
    kt::atomic_or(args.seen + s * WORDS + i / 32, bit);
    kt::atomic_or(args.front + s * WORDS + i / 32, bit);
    if (kt::atomic_or(args.in_front + s / 32, 1u << (s % 32)) >> (s % 32) & 1u) continue;
    kt::atomic_add(args.counters + VERTICES, int64{1});
    kt::atomic_add(args.counters + EDGES, kt::degree_of(args.offsets, s));
  }
}

// Counts the incoming edges of the vertices that are not done, per segment: the words first_words[i] to
// first_words[i + 1] - 1. A warp takes adjacent words, so that it adds to few counts.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_left_warp(const offset_t* in_offsets, int64 n_vertices, const uint32* done,
                               const int64* first_words, int64 n_segments, int64* edges_left) {
  const int64 n_words = (n_vertices + 31) / 32;
  const int64 share = (n_words + kt::n_warps() - 1) / kt::n_warps();
  const int64 begin = kt::warp_id() * share;
  const int64 end = begin + share < n_words ? begin + share : n_words;
  if (begin >= end) return;
  int64 segment =
      kt::first_where(0, n_segments, [=](int64 i) { return kt::load_constant(first_words + i + 1) > begin; });
  int64 edges = 0;
  const auto flush = [&] {
    edges = kt::sum_of_all(edges);
    if (kt::lane() == 0 && edges) kt::atomic_add(edges_left + segment, edges);
    edges = 0;
  };
  for (int64 word = begin; word < end; ++word) {
    while (word >= kt::load_constant(first_words + segment + 1)) {
      flush();
      ++segment;
    }
    const int64 v = word * 32 + kt::lane();
    if (v >= n_vertices || kt::has_bit(done, v)) continue;
    const int64 degree = kt::degree_of(in_offsets, v);
    edges += degree < MIN_READ ? MIN_READ : degree;
  }
  flush();
}

// Every vertex that is not done searches its incoming edges for vertices of the frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_bit_parallel_pull_warp(const LevelArgs args) {
  const kt::LaneWords alive_sources = kt::constant_lane_words(args.alive, 0);

  // Chunks of the long lists, a warp each: their bits are gathered, and a later kernel finalizes them.
  for (int64 i = kt::warp_id(); i < args.n_hub_chunks; i += kt::n_warps()) {
    const kt::AdjacencyList list =
        shifted(kt::chunk_of<CHUNK>(args.in_offsets, kt::load_constant(args.hub_chunks + i)), args.first_edge);
    const int64 v = list.u;
    if (kt::racy_load(args.done + v / 32) >> (v % 32) & 1u)
      continue;  // of hubs only the finalizing kernel sets this bit; other bits of the word may change now
    const kt::LaneWords before = kt::lane_words(args.seen, v);  // of hubs, only the finalizing kernel changes it
    Gather gather{args.front, before};
#pragma unroll
    for (int32 j = 0; j < kt::WORDS_PER_LANE; ++j)  // what other chunks of v have found so far
      gather.bits.words[j] |= kt::racy_load(args.gathered + v * WORDS + kt::lane_in_bitset() * kt::WORDS_PER_LANE + j);
    const kt::LaneWords others = gather.bits;  // of this vertex and the other chunks; only what is new is added below
    if (!kt::any(ALL_LANES, alive_sources.without(gather.bits).is_any())) continue;
    kt::edges_until(args.in_targets, list, WARP, [&](bool valid, vertex_t u) {
      uint32 hits = kt::ballot(ALL_LANES, valid && kt::has_bit(args.in_front, u));
      if (hits == 0) return true;
      while (hits) gather.add(hits, u, true);
      kt::join_bitsets(gather.bits);
      return kt::any(ALL_LANES, alive_sources.without(gather.bits).is_any());
    });
    const bool is_new =
        kt::bitset_in_warp() == 0 && kt::add_shared(args.gathered, v, gather.bits.without(others).without(before));
    if (kt::any(ALL_LANES, is_new) && kt::lane() == 0) kt::atomic_or(args.touched + v / 32, 1u << (v % 32));
  }

  // All other vertices, 32 per warp, each by the lanes of one bitset.
  Finalizer finalizer{args, alive_sources};
  for (int64 word = args.first_word + kt::warp_id(); word < args.end_word; word += kt::n_warps()) {
    const uint32 done_before = kt::racy_load(args.done + word);
    finalizer.is_found = finalizer.is_done = 0;
    for (uint32 left = ~done_before; left;) {
      const int32 bit = kt::take_bit(left);
      kt::AdjacencyList list = {};
      if (bit >= 0)
        list = shifted(kt::adjacency_list(args.in_offsets, static_cast<vertex_t>(word * 32 + bit)), args.first_edge);
      const bool has = bit >= 0 && list.end - list.begin < CHUNK;
      const kt::LaneWords before = has ? kt::lane_words(args.seen, word * 32 + bit) : alive_sources;
      Gather gather{args.front, before};
      if (!kt::any_in_bitset(alive_sources.without(before).is_any())) list.end = list.begin;
      kt::edges_until(args.in_targets, list, LANES, [&](bool valid, vertex_t u) {
        const uint32 lanes = kt::ballot(ALL_LANES, valid && kt::has_bit(args.in_front, u));
        const int32 shift = kt::bitset_in_warp() * LANES;
        uint32 hits = LANES == WARP ? lanes : lanes & (((1u << (LANES % WARP)) - 1u) << shift);
        bool wants_more = true;
        while (kt::any(ALL_LANES, hits != 0)) {
          gather.add(hits, u, false);
          wants_more = kt::any_in_bitset(alive_sources.without(gather.bits).is_any());
          if (!wants_more) hits = 0;
        }
        return wants_more;
      });
      finalizer.finalize(has, word, bit, gather.bits, before);
    }
    if (kt::lane() == 0) {
      args.is_found[word] = finalizer.is_found;
      if (finalizer.is_done) kt::racy_store(args.done + word, done_before | finalizer.is_done);
    }
  }
  finalizer.add_counts();
}

// Lists the edges of the frontier in chunks of at most CHUNK edges of one vertex.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_list(const offset_t* offsets, int64 n_vertices, const uint32* in_front, int64 capacity,
                          uint64* chunks, int64* counters) {
  for (int64 word = kt::thread_id(); word < (n_vertices + 31) / 32; word += kt::n_threads()) {
    for (uint32 left = kt::load_constant(in_front + word); left; left &= left - 1) {
      const kt::AdjacencyList list =
          kt::adjacency_list(offsets, static_cast<vertex_t>(word * 32 + kt::first_lane(left)));
      const int64 n = (list.end - list.begin + CHUNK - 1) / CHUNK;
      if (n == 0) continue;
      const int64 first = kt::atomic_add(counters + CHUNKS, n);
      for (int64 i = 0; i < n && first + i < capacity; ++i)
        chunks[first + i] = static_cast<uint64>(i) << 32 | static_cast<uint32>(list.u);
    }
  }
}

// Every frontier vertex adds its bits to the neighbors that lack some.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_bit_parallel_push_warp(const PushArgs args) {
  const int64 listed = kt::load_constant(args.counters + CHUNKS);
  for (int64 i = kt::warp_id(); i < (listed < args.capacity ? listed : args.capacity); i += kt::n_warps()) {
    const kt::AdjacencyList list = kt::chunk_of<CHUNK>(args.offsets, kt::load_constant(args.chunks + i));
    const kt::LaneWords mine = kt::lane_words(args.front, list.u);
    kt::edges_of_list(args.targets, {0, 1}, list, [&](bool valid, vertex_t, offset_t, vertex_t v) {
      for (uint32 hits = kt::ballot(ALL_LANES, valid && !kt::has_bit(args.done, v)); hits;) {
        const int32 from = kt::take_bit(hits);
        const int64 to = kt::broadcast(ALL_LANES, v, from >= 0 ? from : 0);
        const bool is_new = from >= 0 && kt::add_shared(args.gathered, to, mine.without(kt::lane_words(args.seen, to)));
        if (kt::any_in_bitset(is_new) && kt::lane_in_bitset() == 0)
          kt::atomic_or(args.touched + to / 32, 1u << (to % 32));
      }
    });
  }
}

// Builds the next frontier from the gathered bits.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_bit_parallel_finalize_warp(const LevelArgs args) {
  Finalizer finalizer{args, kt::constant_lane_words(args.alive, 0)};
  for (int64 word = kt::warp_id(); word < (args.n_vertices + 31) / 32; word += kt::n_warps()) {
    const uint32 bits = args.touched[word];
    finalizer.is_found = finalizer.is_done = 0;
    for (uint32 left = bits; left;) {
      const int32 bit = kt::take_bit(left);
      kt::LaneWords before = {}, after = {};
      if (bit >= 0) {
        const int64 v = word * 32 + bit;
        before = after = kt::lane_words(args.seen, v);
        after.add(kt::lane_words(args.gathered, v));
        kt::lane_words(args.gathered, v) = kt::LaneWords{};
      }
      finalizer.finalize(bit >= 0, word, bit, after, before);
    }
    kt::warp_barrier(ALL_LANES);  // all lanes have read touched[word]
    if (kt::lane() == 0) {
      args.is_found[word] = (args.keeps_found ? args.is_found[word] : 0u) | finalizer.is_found;
      if (finalizer.is_done) args.done[word] |= finalizer.is_done;
      if (bits) args.touched[word] = 0;
    }
  }
  finalizer.add_counts();
}

// Counts the target vertices that at least one source in `alive` has not reached.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_missing_warp(const int64* target_vertices, int64 n_target_vertices, const uint32* seen,
                                  const uint32* alive, int64* counters) {
  const kt::LaneWords alive_sources = kt::constant_lane_words(alive, 0);
  for (int64 first = kt::warp_id() * kt::BITSETS_PER_WARP; first < n_target_vertices;
       first += kt::n_warps() * kt::BITSETS_PER_WARP) {
    const int64 i = first + kt::bitset_in_warp();
    const bool is_missing =
        i < n_target_vertices &&
        alive_sources.without(kt::lane_words(seen, kt::load_constant(target_vertices + i))).is_any();
    const uint32 lanes = kt::ballot(ALL_LANES, is_missing);
    if (kt::lane() == 0 && lanes) kt::atomic_add(counters + MISSING, int64{kt::count_lanes(lanes)});
  }
}
