// Many blocks: each block searches from a source of its own, and takes the next one when it is through.
//
// No barrier but the block's, one a level. What is new the tables of the last levels say
// (kt/vertex_table.cuh), in shared memory, like the queues; what finds no slot there, or
// where edges lead one way only, the hop counts in global memory. A queue's vertices that
// have no room in shared memory lie in global memory, and what has none there either is
// found again among the hop counts.
//
//   shared    four tables of SLOTS vertices, two queues of ROOM
//   reads     offsets and edges of what is reached    writes   a row of hop counts a source
//
// A search deeper than MOST_HOPS, or than `columns` where levels are counted, says so, for
// the host to begin again with more.
#include <kt/edges.cuh>
#include <kt/vertex_table.cuh>

namespace {

using kt::ALL_LANES;
using kt::int32;
using kt::int64;
using kt::uint32;

constexpr int32 STOPPED_NOWHERE = -1;
constexpr int32 TOO_DEEP = -2;
constexpr int32 N_TABLES = 4;  // levels L - 1 to L + 1, and that of L + 2, which is cleared

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
    bool is_new[N];
    int32 mine = 0;
#pragma unroll
    for (int32 i = 0; i < N; ++i) v[i] = edges.valid[i] ? kt::load_constant(search.targets + edges.e[i]) : edges.u[i];
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      is_new[i] = edges.valid[i] && search.claim(v[i], level);
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
  int32* tables;     // [N_TABLES][SLOTS]
  vertex_t* queues;  // ROOM vertices of one level, and of the next
  vertex_t* beyond;
  int64 spill_room;
  int32* sizes;  // [3]: one read, one written, one cleared
  hop_t* distance;

  KT_DEVICE Frontier frontier(int32 level) const {
    const int32 which = level % 2;
    return {queues + which * ROOM, beyond + which * spill_room, spill_room};
  }
  KT_DEVICE int32* table(int32 level) const { return tables + (level + N_TABLES) % N_TABLES * SLOTS; }
  KT_DEVICE void clear(int32 level) const {
    for (int32 i = kt::thread_in_block(); i < SLOTS; i += BLOCK) table(level)[i] = kt::NO_VERTEX;
  }

  // Whether a vertex is of this level, found by this thread and no other.
  KT_DEVICE bool claim(vertex_t v, int32 level) const {
    const int32 home = kt::slot_of(kt::hash_of(v));
    const kt::Held in_last = kt::holds(table(level - 1), home, v);
    if (in_last == kt::IS) return false;
    const kt::Held in_one_before = kt::holds(table(level - 2), home, v);
    if (in_one_before == kt::IS) return false;
    bool is_new;
    if (kt::put(table(level), home, v, is_new) == kt::NO_SLOT) return claim_in_memory(v, level);
    const bool is_sure = UNDIRECTED && in_last == kt::IS_NOT && in_one_before == kt::IS_NOT;
    // Who has put it into the table is alone with it, and older levels were written before a barrier.
    is_new = is_new && (is_sure || kt::racy_load(distance + v) == kt::UNREACHED);
    if (is_new) kt::racy_store(distance + v, static_cast<hop_t>(level));
    return is_new;
  }

  // Nobody finds a slot for this vertex any more, so all who claim it do it here.
  KT_DEVICE bool claim_in_memory(vertex_t v, int32 level) const {
    constexpr int32 HOPS_A_WORD = 4 / sizeof(hop_t);
    constexpr uint32 MASK = 0xffffffffu >> (32 - 8 * sizeof(hop_t));
    int32* const word = reinterpret_cast<int32*>(distance) + v / HOPS_A_WORD;
    const int32 shift = static_cast<int32>(v % HOPS_A_WORD) * 16;
    for (;;) {
      const int32 before = kt::racy_load(word);
      if ((static_cast<uint32>(before) >> shift & MASK) != MASK) return false;
      const uint32 others = static_cast<uint32>(before) & ~(MASK << shift);
      const int32 after = static_cast<int32>(others | (static_cast<uint32>(level) & MASK) << shift);
      if (kt::compare_and_swap(word, before, after) == before) return true;
    }
  }

  KT_DEVICE void begin(vertex_t source) const {
    for (int64 v = kt::thread_in_block(); v < n_vertices; v += BLOCK) distance[v] = kt::UNREACHED;
    for (int32 level = 0; level < N_TABLES; ++level) clear(level);
    kt::block_barrier();
    if (kt::thread_in_block() == 0) {
      distance[source] = 0;
      table(0)[kt::slot_of(kt::hash_of(source))] = static_cast<int32>(source);
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
    clear(level + 2);
    Claiming<hop_t> claiming = {*this, level + 1, frontier(level + 1), sizes + (level + 1) % 3};
    const int32 width = kt::lanes_a_row(int64{BLOCK}, n);
    kt::edges_by_discovery_ahead<AHEAD>(kt::one_block(), n, rows, claiming, kt::WARP / width);
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
                           vertex_t* spill, int64 pitch, bool is_kept, hop_t* distance, hop_t* at_wanted, int64 columns,
                           int32* counts, int32* outcome) {
  KT_DYNAMIC_SHARED(int32, tables);
  KT_SHARED(int32, sizes, [3]);
  KT_SHARED(int64, task, [1]);
  vertex_t* const queues = reinterpret_cast<vertex_t*>(tables + N_TABLES * SLOTS);
  const int64 block = kt::block_id();
  vertex_t* const beyond = spill + 2 * block * spill_room;
  for (;;) {
    if (kt::thread_in_block() == 0) task[0] = kt::atomic_add(taken, int64{1});
    kt::block_barrier();
    const int64 i = task[0];
    if (i >= n_sources) return;
    hop_t* const row = distance + (is_kept ? i : block) * pitch;
    const Search<hop_t> search{offsets, targets, n_vertices, tables, queues, beyond, spill_room, sizes, row};
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
                       const int64* __restrict__ wanted, int64 n_wanted, int64 spill_room, vertex_t* spill, int64 pitch,
                       int32 is_kept, short* distance, short* at_wanted, int64 columns, int32* counts, int32* outcome) {
  search_each(offsets, targets, n_vertices, sources, n_sources, taken, last_level, {wanted, n_wanted}, spill_room,
              spill, pitch, is_kept != 0, distance, at_wanted, columns, counts, outcome);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_many_blocks_32(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, int64 n_vertices,
                       const int64* __restrict__ sources, int64 n_sources, int64* taken, int32 last_level,
                       const int64* __restrict__ wanted, int64 n_wanted, int64 spill_room, vertex_t* spill, int64 pitch,
                       int32 is_kept, int32* distance, int32* at_wanted, int64 columns, int32* counts, int32* outcome) {
  search_each(offsets, targets, n_vertices, sources, n_sources, taken, last_level, {wanted, n_wanted}, spill_room,
              spill, pitch, is_kept != 0, distance, at_wanted, columns, counts, outcome);
}
