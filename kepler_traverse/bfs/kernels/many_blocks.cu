// Many blocks: each block searches from a source of its own, and takes the next one when it is through.
//
// No barrier but the block's, one a level. Its queues of rows lie in shared memory; what
// has no room there lies in global memory, and what has none there either is found again
// among the distances. So do the bits of visited vertices, where SHARED_BITS says that
// there is room; else in global memory.
//
//   shared    visited bits or none, two queues of ROOM rows
//   reads     offsets and edges of what is reached    writes   a row of hop counts a source
//
// A search deeper than MOST_HOPS, or than `columns` where levels are counted, says so, for
// the host to begin again with more.
#include <kt/edges.cuh>

namespace {

using kt::ALL_LANES;
using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;

constexpr int32 STOPPED_NOWHERE = -1;
constexpr int32 TOO_DEEP = -2;

// A row in a word: where it begins, and its length, which the host has checked to fit.
constexpr int32 DEGREE_BITS = 28;
KT_DEVICE uint64 packed(const kt::Row& row) {
  return static_cast<uint64>(row.begin) << DEGREE_BITS | static_cast<uint64>(row.end - row.begin);
}
KT_DEVICE kt::Row unpacked(uint64 word) {
  const offset_t begin = static_cast<offset_t>(word >> DEGREE_BITS);
  return {0, begin, begin + static_cast<offset_t>(word & ((uint64{1} << DEGREE_BITS) - 1))};
}

struct Frontier {
  uint64* in_shared;
  uint64* in_global;
  int64 room;  // there

  KT_DEVICE void store(int64 i, uint64 row) const {
    if (i < ROOM)
      in_shared[i] = row;
    else if (i - ROOM < room)
      in_global[i - ROOM] = row;
  }
  KT_DEVICE uint64 load(int64 i) const { return i < ROOM ? in_shared[i] : in_global[i - ROOM]; }
  KT_DEVICE bool holds(int64 n) const { return n - ROOM <= room; }
};

struct Wanted {
  const int64* vertices;
  int64 size;
};

// What one search of a block works with.
template <typename hop_t>
struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  int64 n_vertices;
  uint32* visited;
  uint64* queues;  // ROOM rows of one level, and of the next
  uint64* beyond;
  int64 spill_room;
  int32* sizes;  // [3]: one read, one written, one cleared
  hop_t* distance;

  KT_DEVICE Frontier frontier(int32 level) const {
    const int32 which = level % 2;
    return {queues + which * ROOM, beyond + which * spill_room, spill_room};
  }

  KT_DEVICE bool claim(vertex_t v) const {
    uint32* const word = visited + v / 32;
    const uint32 bit = 1u << (v % 32);
    // Bits are only set: one that is not seen yet costs the atomic and no more.
    return (kt::racy_load(word) & bit) == 0 && (kt::atomic_or(word, bit) & bit) == 0;
  }

  KT_DEVICE void begin(vertex_t source) const {
    for (int64 v = kt::thread_in_block(); v < n_vertices; v += BLOCK) distance[v] = kt::UNREACHED;
    for (int64 word = kt::thread_in_block(); word < (n_vertices + 31) / 32; word += BLOCK) visited[word] = 0;
    kt::block_barrier();
    if (kt::thread_in_block() == 0) {
      distance[source] = 0;
      visited[source / 32] = 1u << (source % 32);
      frontier(0).store(0, packed(kt::row_of(offsets, source)));
      sizes[0] = 1;
      sizes[1] = 0;
    }
    kt::block_barrier();
  }

  KT_DEVICE void step(int32 level, int32 size) const {
    const Frontier from = frontier(level);
    const Frontier to = frontier(level + 1);
    int32* const found = sizes + (level + 1) % 3;
    const bool is_listed = from.holds(size);
    const int64 n = is_listed ? size : n_vertices;
    const auto rows = [&](int64 i, bool) {
      if (is_listed) return unpacked(from.load(i));
      const bool is_in_front = kt::racy_load(distance + i) == level;  // others write the next level
      return is_in_front ? kt::row_of(offsets, static_cast<vertex_t>(i)) : kt::Row{};
    };
    kt::edges_by_virtual_warp(targets, kt::one_block(), n, kt::lanes_a_row(int64{BLOCK}, n), rows,
                              [&](bool valid, vertex_t, offset_t, vertex_t v) {
                                const bool is_new = valid && claim(v);
                                const uint32 lanes = kt::ballot(ALL_LANES, is_new);
                                if (lanes == 0) return;
                                int32 first = 0;
                                if (kt::lane() == 0) first = kt::atomic_add(found, kt::count_lanes(lanes));
                                if (is_new) kt::racy_store(distance + v, static_cast<hop_t>(level + 1));
                                const uint64 row = is_new ? packed(kt::row_of(offsets, v)) : 0;
                                first = kt::broadcast(ALL_LANES, first, 0);
                                if (is_new) to.store(int64{first} + kt::count_lanes(lanes & kt::lanes_before()), row);
                              });
  }

  // Whether a wanted vertex of this thread's is unreached: from `at` on, before which none is.
  KT_DEVICE bool misses(const Wanted& wanted, int64& at) const {
    while (at < wanted.size && distance[kt::load_constant(wanted.vertices + at)] != kt::UNREACHED) at += BLOCK;
    return at < wanted.size;
  }

  // Levels walked; `stopped` at which one, where not all are reached.
  KT_DEVICE int32 run(vertex_t source, int32 last_level, const Wanted& wanted, int64 columns, int32* counts,
                      int32& stopped) const {
    begin(source);
    int64 at = kt::thread_in_block();
    for (int32 level = 0;; ++level) {
      const int32 size = sizes[level % 3];
      if (size == 0) return level;
      if (kt::thread_in_block() == 0) {
        sizes[(level + 2) % 3] = 0;
        if (counts && level < columns) counts[level] = size;
      }
      stopped = level;
      if (level >= last_level) return level;
      if (wanted.size && !kt::block_any(misses(wanted, at))) return level;
      stopped = TOO_DEEP;
      if (level >= MOST_HOPS && sizeof(hop_t) < 4) return level;
      if (counts && level + 1 >= columns) return level;
      stopped = STOPPED_NOWHERE;
      step(level, size);
      kt::block_barrier();
    }
  }
};

template <typename hop_t>
KT_DEVICE void search_each(const offset_t* offsets, const vertex_t* targets, int64 n_vertices, const int64* sources,
                           int64 n_sources, int64* taken, int32 last_level, Wanted wanted, int64 spill_room,
                           uint64* spill, uint32* bits, int64 pitch, bool is_kept, hop_t* distance, hop_t* at_wanted,
                           int64 columns, int32* counts, int32* outcome) {
  KT_DYNAMIC_SHARED(uint64, queues);
  KT_SHARED(int32, sizes, [3]);
  KT_SHARED(int64, task, [1]);
  const int64 n_words = (n_vertices + 31) / 32;
  const int64 block = kt::block_id();
  uint32* const visited = SHARED_BITS ? reinterpret_cast<uint32*>(queues + 2 * ROOM) : bits + block * n_words;
  uint64* const beyond = spill + 2 * block * spill_room;
  for (;;) {
    if (kt::thread_in_block() == 0) task[0] = kt::atomic_add(taken, int64{1});
    kt::block_barrier();
    const int64 i = task[0];
    if (i >= n_sources) return;
    hop_t* const row = distance + (is_kept ? i : block) * pitch;
    const Search<hop_t> search{offsets, targets, n_vertices, visited, queues, beyond, spill_room, sizes, row};
    int32 stopped = STOPPED_NOWHERE;
    const int32 levels = search.run(static_cast<vertex_t>(kt::load_constant(sources + i)), last_level, wanted, columns,
                                    counts ? counts + i * columns : nullptr, stopped);
    kt::block_barrier();  // all have read the task and the sizes
    if (kt::thread_in_block() == 0) {
      outcome[2 * i] = levels;
      outcome[2 * i + 1] = stopped;
    }
    if (at_wanted)
      for (int64 j = kt::thread_in_block(); j < wanted.size; j += BLOCK)
        at_wanted[i * wanted.size + j] = row[kt::load_constant(wanted.vertices + j)];
    kt::block_barrier();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_many_blocks_16(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, int64 n_vertices,
                       const int64* __restrict__ sources, int64 n_sources, int64* taken, int32 last_level,
                       const int64* __restrict__ wanted, int64 n_wanted, int64 spill_room, uint64* spill, uint32* bits,
                       int64 pitch, int32 is_kept, short* distance, short* at_wanted, int64 columns, int32* counts,
                       int32* outcome) {
  search_each(offsets, targets, n_vertices, sources, n_sources, taken, last_level, {wanted, n_wanted}, spill_room,
              spill, bits, pitch, is_kept != 0, distance, at_wanted, columns, counts, outcome);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_many_blocks_32(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, int64 n_vertices,
                       const int64* __restrict__ sources, int64 n_sources, int64* taken, int32 last_level,
                       const int64* __restrict__ wanted, int64 n_wanted, int64 spill_room, uint64* spill, uint32* bits,
                       int64 pitch, int32 is_kept, int32* distance, int32* at_wanted, int64 columns, int32* counts,
                       int32* outcome) {
  search_each(offsets, targets, n_vertices, sources, n_sources, taken, last_level, {wanted, n_wanted}, spill_room,
              spill, bits, pitch, is_kept != 0, distance, at_wanted, columns, counts, outcome);
}
