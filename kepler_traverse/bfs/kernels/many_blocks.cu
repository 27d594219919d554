// Many blocks: each block searches from a source of its own, and takes the next one when it is through.
//
// No barrier but the block's, one a level. Queues lie in shared memory; what has no room there lies in
// global memory, and what has none there either is found again among the hop counts. What is new
//
//   the bits of visited vertices say, in shared memory, with SHARED_BITS. Where they don't all fit, those
//   from the word SHARED_WORDS on lie in global memory, and the L2 holds them;
//   else a table of the last levels' vertices, there too: in an undirected graph a neighbour of level
//   L is of level L - 1, L or L + 1, so what was found before that need not be known;
//   else the hop counts themselves: for vertices whose place in the table is full, and where edges lead
//   one way only.
//
//   reads     offsets and edges of what is reached    writes   a row of hop counts a source
//
// A search deeper than MOST_HOPS, or than `columns` where levels are counted, says so, for
// the host to begin again with more.
#include <kt/edges_ahead.cuh>
#include <kt/hops.cuh>

namespace {

using kt::ALL_LANES;
using kt::int32;
using kt::int64;
using kt::uint32;

constexpr int32 STOPPED_NOWHERE = -1;
constexpr int32 TOO_DEEP = -2;

// Of the table: buckets of words, each a vertex and its level modulo 16.
constexpr int32 BUCKET = 4;
constexpr int32 N_BUCKETS = SLOTS / BUCKET;
constexpr int32 LEVEL_BITS = 4;
constexpr uint32 EMPTY = 0xffffffffu;
constexpr int32 LONG_AGO = -4;
constexpr int32 VISITED = -1, IN_MEMORY = -2;

// Where to claim a vertex: at a word of its bucket, in memory, or not at all; and what stood there.
struct Place {
  int32 where = IN_MEMORY;
  uint32 word = 0;
};
static_assert((N_BUCKETS & (N_BUCKETS - 1)) == 0, "a hash is cut to a bucket by a mask");

struct Frontier {
  vertex_t* in_shared;
  vertex_t* in_global;
  int64 room;  // there

  KT_DEVICE void store(int64 i, vertex_t v) const {
    if (i < ROOM)
      in_shared[i] = v;
    else if (i - ROOM < room)
      in_global[i - ROOM] = v;
  }
  KT_DEVICE vertex_t load(int64 i) const { return i < ROOM ? in_shared[i] : in_global[i - ROOM]; }
  KT_DEVICE bool holds(int64 n) const { return n - ROOM <= room; }
};

struct Wanted {
  const int64* vertices;
  int64 size;
};

template <typename hop_t>
struct Search;

// Claims the far ends of edges, several of each lane, whose loads are on their way together.
template <typename hop_t>
struct Claiming {
  const Search<hop_t>& search;
  int32 level;
  Frontier to;
  int32* found;

  template <int32 N>
  KT_DEVICE void ahead(const kt::Edges<N>& edges) const {
    vertex_t v[N];
    Place place_for[N];
    bool is_new[N];
    int32 mine = 0;
#pragma unroll
    for (int32 i = 0; i < N; ++i) v[i] = edges.valid[i] ? kt::load_constant(search.targets + edges.e[i]) : edges.u[i];
#pragma unroll
    for (int32 i = 0; i < N; ++i) place_for[i] = search.look(edges.valid[i], v[i], level);
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      is_new[i] = edges.valid[i] && search.claim(v[i], level, place_for[i]);
      mine += is_new[i];
    }
    const int32 through = kt::sum_through(mine);
    const int32 total = kt::broadcast(ALL_LANES, through, kt::WARP - 1);
    if (total == 0) return;
    int32 first = 0;
    if (kt::lane() == 0) first = kt::atomic_add(found, total);
    int64 place = kt::broadcast(ALL_LANES, first, 0) + through - mine;
#pragma unroll
    for (int32 i = 0; i < N; ++i)
      if (is_new[i]) to.store(place++, v[i]);
  }
};

// What one search of a block works with.
template <typename hop_t>
struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  int64 n_vertices;
  uint32* visited;   // bits, or the table
  uint32* outside;   // bits that have no place there
  int32* full_at;    // [N_BUCKETS]: the last level of which a bucket had no room for a vertex
  vertex_t* queues;  // ROOM vertices of one level, and of the next
  vertex_t* beyond;
  int64 spill_room;
  int32* sizes;  // [3]: one read, one written, one cleared
  hop_t* distance;

  KT_DEVICE Frontier frontier(int32 level) const {
    const int32 which = level % 2;
    return {queues + which * ROOM, beyond + which * spill_room, spill_room};
  }
  // What stands where a vertex is or would be; of several, loads are on their way together.
  KT_DEVICE Place look(bool valid, vertex_t v, int32 level) const {
    if (!valid || (!SHARED_BITS && !UNDIRECTED)) return {};
    if (SHARED_BITS)
      return {IN_MEMORY, is_outside(v) ? kt::racy_load(outside_word(v)) : kt::racy_load(visited + v / 32)};
    return look_in_table(v, level);
  }

  // Whether a vertex is of this level, found by this thread and no other.
  KT_DEVICE bool claim(vertex_t v, int32 level, Place place) const {
    if (!SHARED_BITS) return UNDIRECTED ? claim_in_table(v, level, place) : kt::claim_hops(distance, v, level);
    const uint32 bit = 1u << (v % 32);
    // Bits are only set: one that is not seen yet costs the atomic and no more.
    if (place.word & bit) return false;
    const uint32 before = is_outside(v) ? kt::atomic_or(outside_word(v), bit) : kt::atomic_or(visited + v / 32, bit);
    const bool is_new = (before & bit) == 0;
    if (is_new) kt::racy_store(distance + v, static_cast<hop_t>(level));
    return is_new;
  }
  KT_DEVICE static bool is_outside(vertex_t v) { return SHARED_WORDS && v / 32 >= SHARED_WORDS; }
  KT_DEVICE uint32* outside_word(vertex_t v) const { return outside + (v / 32 - SHARED_WORDS); }

  // A word of three levels ago or longer is free to take; none becomes so while a level is walked. So all
  // who look for a vertex at once take the same word for it. That a bucket is full is said before anybody
  // reads it: who has put a vertex there is seen by those who would otherwise claim it in memory.
  KT_DEVICE Place look_in_table(vertex_t v, int32 level) const {
    const uint32 bucket = bucket_of(v);
    const bool was_full = kt::racy_load(full_at + bucket) >= level - 2;
    Place place;
#pragma unroll
    for (int32 i = BUCKET - 1; i >= 0; --i) {
      const uint32 word = kt::racy_load(visited + bucket * BUCKET + i);
      if (word >> LEVEL_BITS == static_cast<uint32>(v)) place.where = VISITED;
      const bool is_free = word == EMPTY || ((static_cast<uint32>(level) - word) & ((1u << LEVEL_BITS) - 1)) >= 3;
      if (is_free && !was_full && place.where != VISITED) place = {i, word};
    }
    return place;
  }

  KT_DEVICE bool claim_in_table(vertex_t v, int32 level, Place place) const {
    const uint32 bucket = bucket_of(v);
    const uint32 mine = static_cast<uint32>(v) << LEVEL_BITS | (static_cast<uint32>(level) & ((1u << LEVEL_BITS) - 1));
    for (; place.where >= 0; place = look_in_table(v, level)) {
      int32* const word = reinterpret_cast<int32*>(visited + bucket * BUCKET + place.where);
      const int32 before = static_cast<int32>(place.word);
      if (kt::compare_and_swap(word, before, static_cast<int32>(mine)) != before) continue;
      kt::racy_store(distance + v, static_cast<hop_t>(level));
      return true;
    }
    const bool is_new = place.where == IN_MEMORY && kt::claim_hops(distance, v, level);
    if (is_new) kt::racy_store(full_at + bucket, level);
    return is_new;
  }
  KT_DEVICE static uint32 bucket_of(vertex_t v) { return static_cast<uint32>(v) * 2654435761u >> 10 & (N_BUCKETS - 1); }

  KT_DEVICE void begin(vertex_t source) const {
    for (int64 v = kt::thread_in_block(); v < n_vertices; v += BLOCK) distance[v] = kt::UNREACHED;
    const int64 n_bits = (n_vertices + 31) / 32;
    const int64 n_words = SHARED_BITS ? (SHARED_WORDS && SHARED_WORDS < n_bits ? SHARED_WORDS : n_bits) : SLOTS;
    for (int64 i = kt::thread_in_block(); i < n_words; i += BLOCK) visited[i] = SHARED_BITS ? 0 : EMPTY;
    for (int64 i = n_words + kt::thread_in_block(); SHARED_BITS && i < n_bits; i += BLOCK) outside[i - n_words] = 0;
    for (int32 i = kt::thread_in_block(); !SHARED_BITS && i < N_BUCKETS; i += BLOCK) full_at[i] = LONG_AGO;
    kt::block_barrier();
    if (kt::thread_in_block() == 0) {
      claim(source, 0, look(true, source, 0));
      frontier(0).store(0, source);
      sizes[0] = 1;
      sizes[1] = 0;
    }
    kt::block_barrier();
  }

  KT_DEVICE void step(int32 level, int32 size) const {
    const Frontier from = frontier(level);
    const bool is_listed = from.holds(size);
    const int64 n = is_listed ? size : n_vertices;
    const auto rows = [&](int64 i, bool) {
      if (is_listed) return kt::row_of(offsets, from.load(i));
      const bool is_in_front = kt::racy_load(distance + i) == level;  // others write the next level
      return is_in_front ? kt::row_of(offsets, static_cast<vertex_t>(i)) : kt::Row{};
    };
    Claiming<hop_t> claiming = {*this, level + 1, frontier(level + 1), sizes + (level + 1) % 3};
    // Rows are short: no search for edges is worth its while.
    kt::edges_by_virtual_warp_ahead<AHEAD>(kt::one_block(), n, kt::lanes_a_row(int64{BLOCK}, n), rows, claiming);
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
                           vertex_t* spill, uint32* outside, int64 pitch, bool is_kept, hop_t* distance,
                           hop_t* at_wanted, int64 columns, int32* counts, int32* outcome) {
  KT_DYNAMIC_SHARED(vertex_t, queues);
  KT_SHARED(int32, sizes, [3]);
  KT_SHARED(int64, task, [1]);
  uint32* const visited = reinterpret_cast<uint32*>(queues + 2 * ROOM);
  int32* const full_at = reinterpret_cast<int32*>(visited + SLOTS);  // beside a table, not beside bits
  const int64 block = kt::block_id();
  vertex_t* const beyond = spill + 2 * block * spill_room;
  for (;;) {
    if (kt::thread_in_block() == 0) task[0] = kt::atomic_add(taken, int64{1});
    kt::block_barrier();
    const int64 i = task[0];
    if (i >= n_sources) return;
    hop_t* const row = distance + (is_kept ? i : block) * pitch;
    uint32* const more = outside + block * ((n_vertices + 31) / 32 - SHARED_WORDS);
    const Search<hop_t> search{offsets, targets, n_vertices, visited, more, full_at,
                               queues,  beyond,  spill_room, sizes,   row};
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
                       const int64* __restrict__ wanted, int64 n_wanted, int64 spill_room, vertex_t* spill,
                       uint32* outside, int64 pitch, int32 is_kept, short* distance, short* at_wanted, int64 columns,
                       int32* counts, int32* outcome) {
  search_each(offsets, targets, n_vertices, sources, n_sources, taken, last_level, {wanted, n_wanted}, spill_room,
              spill, outside, pitch, is_kept != 0, distance, at_wanted, columns, counts, outcome);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_many_blocks_32(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, int64 n_vertices,
                       const int64* __restrict__ sources, int64 n_sources, int64* taken, int32 last_level,
                       const int64* __restrict__ wanted, int64 n_wanted, int64 spill_room, vertex_t* spill,
                       uint32* outside, int64 pitch, int32 is_kept, int32* distance, int32* at_wanted, int64 columns,
                       int32* counts, int32* outcome) {
  search_each(offsets, targets, n_vertices, sources, n_sources, taken, last_level, {wanted, n_wanted}, spill_room,
              spill, outside, pitch, is_kept != 0, distance, at_wanted, columns, counts, outcome);
}
