// BFS from many sources, one source per thread block.
//
// Each block runs a level-synchronous BFS of its own and then takes the next source from a global
// counter. Levels are separated by block barriers only.
//
// Frontier    two queues in shared memory; overflow goes to a queue per block in global memory;
//             beyond that, the next level is found by scanning the distances.
// Visited     one of three, chosen at compile time:
//   SHARED_BITS=1              one bit per vertex in shared memory; with SHARED_WORDS, words from
//                              that number on are in global memory (and stay in the L2)
//   SHARED_BITS=0, UNDIRECTED  a hash table of the vertices of the last three levels in shared
//                              memory. Enough, because an edge of an undirected graph joins levels
//                              that differ by at most one. A vertex whose bucket is full is
//                              claimed as below
//   otherwise                  compare-and-swap on the distances
//
// Reads:  the adjacency lists of all reached vertices.
// Writes: one distance per vertex and source; the distances of targets; vertices per level.
// Error:  a search deeper than MAX_HOPS, or than `columns` where levels are counted, reports
//         TOO_DEEP; the host retries with 32-bit distances and more columns.
//
// Compile-time constants, other than those above:
//   BLOCK            threads per block
//   QUEUE_CAPACITY   vertices per queue in shared memory
//   SLOTS            words of the hash table, a power of two
//   UNROLL           edges per lane that are loaded together
//   MAX_HOPS         largest hop count of a 16-bit distance
//   BUCKET           words per bucket of the hash table
//   LEVEL_BITS       bits of a word of the table that hold the level
//   STOPPED_NOWHERE, TOO_DEEP   what a search reports in place of the level at which it stopped
#include <kt/advance.cuh>

// What a search reports to the host.
struct Outcome {
  int32 levels;   // that were searched
  int32 stopped;  // the level at which it ended early; else STOPPED_NOWHERE or TOO_DEEP
};

// What the host passes (bfs/multi_source/source_per_block.py).
template <typename hop_t>
struct SearchArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  int64* taken;  // the next source, 0 at first
  int32 last_level;
  KT_NULLABLE const int64* target_vertices;  // vertices whose distances end a search
  int64 n_target_vertices;
  KT_NULLABLE const int64* target_offsets;  // [n_sources + 1]: begins of lists per source
  int64 spill_capacity;
  vertex_t* spill;              // [blocks][2][spill_capacity]
  KT_NULLABLE uint32* outside;  // [blocks]: bits that shared memory does not hold
  int64 pitch;                  // from the distances of one source to those of the next
  int32 is_per_source;          // whether each source has distances of its own; else each block
  hop_t* distance;
  KT_NULLABLE hop_t* at_target_vertices;  // [n_sources][n_target_vertices], or the lists one after the other
  int64 columns;
  KT_NULLABLE int32* counts;  // [n_sources][columns]: vertices per level
  Outcome* outcome;           // [n_sources]
};

namespace {

// Hop counts of 16 or 32 bits also serve as the claims of a BFS. UNREACHED: no claim yet.
//
// Stores the hop count of a vertex if it has none. Exactly one thread gets true. Compare-and-swap
// works on words of 32 bits, so the hop counts of a source begin and end at a word boundary.
template <typename hop_t>
KT_DEVICE bool claim_hops(hop_t* distance, vertex_t v, int32 hops) {
  constexpr int32 HOPS_PER_WORD = 4 / sizeof(hop_t);
  constexpr uint32 MASK = 0xffffffffu >> (32 - 8 * sizeof(hop_t));
  int32* const word = reinterpret_cast<int32*>(distance) + v / HOPS_PER_WORD;
  const int32 shift = static_cast<int32>(v % HOPS_PER_WORD) * 16;
  for (;;) {
    const int32 before = kt::racy_load(word);
    if ((static_cast<uint32>(before) >> shift & MASK) != MASK) return false;
    const uint32 others = static_cast<uint32>(before) & ~(MASK << shift);
    const int32 after = static_cast<int32>(others | (static_cast<uint32>(hops) & MASK) << shift);
    if (kt::compare_and_swap(word, before, after) == before) return true;
  }
}

// The hash table: buckets of BUCKET words. A word holds a vertex and its level modulo 16.
constexpr int32 N_BUCKETS = SLOTS / BUCKET;
constexpr uint32 EMPTY = 0xffffffffu;
constexpr int32 LONG_AGO = -4;
constexpr int32 VISITED = -1, IN_MEMORY = -2;

// Where to claim a vertex: at a word of its bucket, in the distances (IN_MEMORY), or nowhere (VISITED). `word` is
// what was read there.
struct Place {
  int32 where = IN_MEMORY;
  uint32 word = 0;
};
static_assert((N_BUCKETS & (N_BUCKETS - 1)) == 0, "a hash is cut to a bucket by a mask");

struct Frontier {
  vertex_t* in_shared;
  vertex_t* in_global;
  int64 global_capacity;  // there

  KT_DEVICE void store(int64 i, vertex_t v) const {
    if (i < QUEUE_CAPACITY)
      in_shared[i] = v;
    else if (i - QUEUE_CAPACITY < global_capacity)
      in_global[i - QUEUE_CAPACITY] = v;
  }
  KT_DEVICE vertex_t load(int64 i) const { return i < QUEUE_CAPACITY ? in_shared[i] : in_global[i - QUEUE_CAPACITY]; }
  KT_DEVICE bool holds(int64 n) const { return n - QUEUE_CAPACITY <= global_capacity; }
};

struct TargetVertices {
  const int64* vertices;
  int64 size;
};

template <typename hop_t>
struct Search;

// Claims the heads of edges, N per lane with N loads in flight.
template <typename hop_t>
struct Claiming {
  const Search<hop_t>& search;
  int32 level;
  Frontier to;
  int32* found;

  template <int32 N>
  KT_DEVICE void unrolled(const kt::Edges<N>& edges) const {
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

    // Reserve places for all that the warp claimed with one atomic.
    const int32 through = kt::sum_through(mine);
    const int32 total = kt::broadcast(ALL_LANES, through, WARP - 1);
    if (total == 0) return;
    int32 first = 0;
    if (kt::lane() == 0) first = kt::atomic_add(found, total);
    int64 place = kt::broadcast(ALL_LANES, first, 0) + through - mine;
#pragma unroll
    for (int32 i = 0; i < N; ++i)
      if (is_new[i]) to.store(place++, v[i]);
  }
};

// The search of one block.
template <typename hop_t>
struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  int64 n_vertices;
  uint32* visited;   // bits, or the table
  uint32* outside;   // bits that have no place there
  int32* full_at;    // [N_BUCKETS]: the last level in which a vertex did not fit the bucket
  vertex_t* queues;  // QUEUE_CAPACITY vertices of one level, and of the next
  vertex_t* beyond;
  int64 spill_capacity;
  int32* sizes;  // [3]: one read, one written, one cleared
  hop_t* distance;

  KT_DEVICE Frontier frontier(int32 level) const {
    const int32 which = level % 2;
    return {queues + which * QUEUE_CAPACITY, beyond + which * spill_capacity, spill_capacity};
  }
  // Reads the word where a vertex is or would be, before it is claimed, so that several loads are in flight together.
  KT_DEVICE Place look(bool valid, vertex_t v, int32 level) const {
    if (!valid || (!SHARED_BITS && !UNDIRECTED)) return {};
    if (SHARED_BITS)
      return {IN_MEMORY, is_outside(v) ? kt::racy_load(outside_word(v)) : kt::racy_load(visited + v / 32)};
    return look_in_table(v, level);
  }

  // Whether this thread, and no other, adds the vertex to this level.
  KT_DEVICE bool claim(vertex_t v, int32 level, Place place) const {
    if (!SHARED_BITS) return UNDIRECTED ? claim_in_table(v, level, place) : claim_hops(distance, v, level);
    const uint32 bit = 1u << (v % 32);
    // Bits are only set: if this value is old, the atomic decides.
    if (place.word & bit) return false;
    const uint32 before = is_outside(v) ? kt::atomic_or(outside_word(v), bit) : kt::atomic_or(visited + v / 32, bit);
    const bool is_new = (before & bit) == 0;
    if (is_new) kt::racy_store(distance + v, static_cast<hop_t>(level));
    return is_new;
  }
  KT_DEVICE static bool is_outside(vertex_t v) { return SHARED_WORDS && v / 32 >= SHARED_WORDS; }
  KT_DEVICE uint32* outside_word(vertex_t v) const { return outside + (v / 32 - SHARED_WORDS); }

  // A word of three levels ago or earlier is free. No word becomes free during a level, so all threads that look up
  // a vertex at once choose the same word for it. Whether the bucket was full is read before its words: a thread that
  // would claim a vertex in memory therefore sees the entry of a thread that put it into the table.
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
    const bool is_new = place.where == IN_MEMORY && claim_hops(distance, v, level);
    if (is_new) kt::racy_store(full_at + bucket, level);
    return is_new;
  }
  KT_DEVICE static uint32 bucket_of(vertex_t v) { return static_cast<uint32>(v) * 2654435761u >> 10 & (N_BUCKETS - 1); }

  KT_DEVICE void begin(vertex_t source) const {
    // A compare-and-swap on a 16-bit distance reads its whole word: the last word has no uninitialized half.
    const int64 n_distances = n_vertices + (sizeof(hop_t) < 4 ? n_vertices % 2 : 0);
    for (int64 v = kt::thread_in_block(); v < n_distances; v += BLOCK) distance[v] = kt::UNREACHED;

    // Clear the bits, in shared memory and outside, or the table.
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
    const auto lists = [&](int64 i, bool) {
      if (is_listed) return kt::adjacency_list(offsets, from.load(i));
      const bool is_in_front = kt::racy_load(distance + i) == level;  // others write the next level
      return is_in_front ? kt::adjacency_list(offsets, static_cast<vertex_t>(i)) : kt::AdjacencyList{};
    };
    Claiming<hop_t> claiming = {*this, level + 1, frontier(level + 1), sizes + (level + 1) % 3};
    // Adjacency lists are short here: a search for edges would cost more than idle lanes.
    kt::edges_by_virtual_warp<UNROLL>(targets, kt::one_block(), n, kt::lanes_per_list(int64{BLOCK}, n), lists,
                                      claiming);
  }

  // Whether a target of this thread is unreached. Targets before `at` are reached.
  KT_DEVICE bool misses(const TargetVertices& target_vertices, int64& at) const {
    while (at < target_vertices.size && distance[kt::load_constant(target_vertices.vertices + at)] != kt::UNREACHED)
      at += BLOCK;
    return at < target_vertices.size;
  }

  // Returns the levels searched; `stopped` is the level at which the search ended early.
  KT_DEVICE int32 run(vertex_t source, int32 last_level, const TargetVertices& target_vertices, int64 columns,
                      int32* counts, int32& stopped) const {
    begin(source);
    int64 at = kt::thread_in_block();
    for (int32 level = 0;; ++level) {
      const int32 size = sizes[level % 3];
      if (size == 0) return level;
      if (kt::thread_in_block() == 0) {
        sizes[(level + 2) % 3] = 0;
        if (counts && level < columns) counts[level] = size;
      }

      // Reasons to end early. `stopped` says which, should this level be the last.
      stopped = level;
      if (level >= last_level) return level;
      if (target_vertices.size && !kt::block_any(misses(target_vertices, at))) return level;
      stopped = TOO_DEEP;
      if (level >= MAX_HOPS && sizeof(hop_t) < 4) return level;
      if (counts && level + 1 >= columns) return level;

      stopped = STOPPED_NOWHERE;
      step(level, size);
      kt::block_barrier();
    }
  }
};

template <typename hop_t>
KT_DEVICE void search_each(const SearchArgs<hop_t>& args) {
  KT_DYNAMIC_SHARED(vertex_t, queues);
  KT_SHARED(int32, sizes, [3]);
  KT_SHARED(int64, task, [1]);
  uint32* const visited = reinterpret_cast<uint32*>(queues + 2 * QUEUE_CAPACITY);
  int32* const full_at = reinterpret_cast<int32*>(visited + SLOTS);  // next to a table, not to bits
  const int64 block = kt::block_id();
  vertex_t* const beyond = args.spill + 2 * block * args.spill_capacity;
  for (;;) {
    // Take the next source.
    if (kt::thread_in_block() == 0) task[0] = kt::atomic_add(args.taken, int64{1});
    kt::block_barrier();
    const int64 i = task[0];
    if (i >= args.n_sources) return;

    // Its targets are a list of its own, or those of all sources.
    hop_t* const distances = args.distance + (args.is_per_source ? i : block) * args.pitch;
    uint32* const more = args.outside + block * ((args.n_vertices + 31) / 32 - SHARED_WORDS);
    const Search<hop_t> search{args.offsets, args.targets, args.n_vertices,     visited, more,     full_at,
                               queues,       beyond,       args.spill_capacity, sizes,   distances};
    const bool has_list = args.target_offsets;
    const int64 first_target = has_list ? kt::load_constant(args.target_offsets + i) : 0;
    const int64 n_target_vertices =
        has_list ? kt::load_constant(args.target_offsets + i + 1) - first_target : args.n_target_vertices;
    const int64* const target_vertices = args.target_vertices + first_target;

    // Search, then report.
    int32 stopped = STOPPED_NOWHERE;
    const int32 levels = search.run(static_cast<vertex_t>(kt::load_constant(args.sources + i)), args.last_level,
                                    {target_vertices, n_target_vertices}, args.columns,
                                    args.counts ? args.counts + i * args.columns : nullptr, stopped);
    kt::block_barrier();  // all threads have read the task and the sizes
    if (kt::thread_in_block() == 0) {
      args.outcome[i] = {levels, stopped};
    }
    if (args.at_target_vertices)
      for (int64 j = kt::thread_in_block(); j < n_target_vertices; j += BLOCK)
        args.at_target_vertices[(has_list ? first_target : i * n_target_vertices) + j] =
            distances[kt::load_constant(target_vertices + j)];
    kt::block_barrier();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_source_per_block_16(const SearchArgs<short> args) {
  search_each(args);
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_source_per_block_32(const SearchArgs<int32> args) {
  search_each(args);
}
