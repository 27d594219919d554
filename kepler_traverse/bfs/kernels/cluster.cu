// Cluster: the first levels of a BFS, while one cluster of blocks can hold the frontier.
//
// Every vertex belongs to a block, and so does its slot in that block's tables, one table
// a level (kt/vertex_table.cuh). Whoever walks an edge puts its far end into the next
// level's table, wherever that lies, with the row it has asked for meanwhile: one trip
// through the cluster, none to the claims in global memory. After the barrier each block
// keeps of its table what is new, writes the claims of that, and walks on. In a directed
// graph the claims say what is new; else the two tables before do.
//
// A table that fills up, or a warp whose vertices have more than BATCH_EDGES edges, raises
// the flag in all blocks, and the level is left to persistent.cu, which begins it again.
// That a level was empty is noticed a step late, when all blocks' counts have arrived.
//
//   shared    tables: 5 of vertices, 2 of their rows, 3 of predecessors; the frontier
//   reads     the edges of the frontier    writes   claims; at the end the frontier
#include <kt/claims.cuh>
#include <kt/cluster.cuh>
#include <kt/edges.cuh>
#include <kt/trace.cuh>
#include <kt/vertex_table.cuh>

namespace {

using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;

// A row in a word. A longer one than BATCH_EDGES is not walked here, and cut to one more.
constexpr int32 DEGREE_BITS = 12;
static_assert(BATCH_EDGES + 1 < 1 << DEGREE_BITS, "the degree of a row must fit its word");
KT_DEVICE uint64 packed_row(const kt::Row& row) {
  const offset_t degree = row.end - row.begin;
  return static_cast<uint64>(row.begin) << DEGREE_BITS |
         static_cast<uint64>(degree < BATCH_EDGES ? degree : BATCH_EDGES + 1);
}
KT_DEVICE kt::Row unpacked_row(vertex_t u, uint64 word) {
  const offset_t begin = static_cast<offset_t>(word >> DEGREE_BITS);
  return {u, begin, begin + static_cast<offset_t>(word & ((1u << DEGREE_BITS) - 1))};
}

constexpr int32 N_TABLES = 5;  // levels L - 2 to L + 1 are read or filled, that of L + 2 is cleared
constexpr uint32 NO_CLAIM = 0xffffffffu;

// The block's memory.
struct Tables {
  uint64* rows;       // [2][SLOTS]
  int32* vertices;    // [N_TABLES][SLOTS]
  int32* frontier;    // [SLOTS]: slots of what is new in the level
  uint32* claimants;  // [3][SLOTS]: the smallest predecessor in the level before

  KT_DEVICE uint64* rows_of(int32 level) const { return rows + level % 2 * SLOTS; }
  KT_DEVICE int32* vertices_of(int32 level) const { return vertices + (level + N_TABLES) % N_TABLES * SLOTS; }
  KT_DEVICE uint32* claimants_of(int32 level) const { return claimants + level % 3 * SLOTS; }

  KT_DEVICE void clear(int32 level) const {
    int32* const table = vertices_of(level);
    for (int32 i = kt::thread_in_block(); i < SLOTS; i += BLOCK) {
      table[i] = kt::NO_VERTEX;
      if (PREDECESSORS) claimants_of(level)[i] = NO_CLAIM;
    }
  }
};

// Whoever raises the flag, once or more often, stores the same.
KT_DEVICE void raise(int32* is_full) {
  for (int32 block = 0; block < CLUSTER; ++block) kt::racy_store(kt::shared_of(is_full, block), 1);
}

// Puts the far ends of edges into the next level's tables.
struct Handing {
  const offset_t* offsets;
  uint64* rows;  // of the next level, in each block, like the next two
  int32* vertices;
  uint32* claimants;
  int32* is_full;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) const {
    if (!valid) return;
    const kt::Row row = kt::row_of(offsets, v);  // on its way together with the table's answer
    const uint32 hash = kt::hash_of(v);
    const int32 block = kt::share_of(hash, CLUSTER);
    bool is_new;
    const int32 slot = kt::put(kt::shared_of(vertices, block), kt::slot_of(hash), v, is_new);
    if (slot == kt::NO_SLOT) return raise(is_full);
    if (PREDECESSORS) kt::atomic_min(kt::shared_of(claimants, block) + slot, static_cast<uint32>(u));
    if (is_new) kt::shared_of(rows, block)[slot] = packed_row(row);
  }
};

// The slots of what is new in a level, in any order; their claims are written.
KT_DEVICE void keep_new(const Tables& tables, kt::claim_t* claims, int32 level, int32* n_new, int32* is_full) {
  const int32* const here = tables.vertices_of(level);
  for (int32 first = 0; first < SLOTS; first += BLOCK) {
    const int32 slot = first + kt::thread_in_block();
    const vertex_t v = slot < SLOTS ? here[slot] : static_cast<vertex_t>(kt::NO_VERTEX);
    bool is_new = v != kt::NO_VERTEX;
    if (is_new && UNDIRECTED) {
      // What was handed to these is in them: else the search would have ended there.
      const int32 home = kt::slot_of(kt::hash_of(v));
      is_new = kt::holds(tables.vertices_of(level - 1), home, v) != kt::IS &&
               kt::holds(tables.vertices_of(level - 2), home, v) != kt::IS;
    } else if (is_new) {
      is_new = kt::level_of(kt::racy_load(claims + v)) == kt::UNREACHED;
    }
    const uint32 lanes = kt::ballot(kt::ALL_LANES, is_new);
    if (lanes == 0) continue;
    int32 place = 0;
    if (kt::lane() == 0) place = kt::atomic_add(n_new, kt::count_lanes(lanes));
    const int32 degree = is_new ? static_cast<int32>(tables.rows_of(level)[slot] & ((1u << DEGREE_BITS) - 1)) : 0;
    place = kt::broadcast(kt::ALL_LANES, place, 0) + kt::count_lanes(lanes & kt::lanes_before());
    if (is_new) {
      tables.frontier[place] = slot;
      kt::racy_store(claims + v,
                     kt::claim_of(level, static_cast<vertex_t>(PREDECESSORS ? tables.claimants_of(level)[slot] : 0)));
    }
    if (kt::reduce_add(kt::ALL_LANES, degree) > BATCH_EDGES && kt::lane() == 0) raise(is_full);
  }
}

// The sum of what the blocks have counted; all lanes of a warp come.
KT_DEVICE int32 size_of_cluster(int32* size) {
  const int32 of_block = kt::lane() < CLUSTER ? *kt::shared_of(size, kt::lane()) : 0;
  return kt::reduce_add(kt::ALL_LANES, of_block);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) KT_CLUSTER(CLUSTER)
    bfs_cluster(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, vertex_t source,
                int32 last_level, const int64* __restrict__ wanted, int64 n_wanted, uint64* packed, vertex_t* queue,
                uint64* pieces, int64* counts, uint32* arrived, int32* distance, int64* trace_rows) {
  KT_DYNAMIC_SHARED(uint64, memory);
  KT_SHARED(int32, sizes, [3]);       // of the frontier in three levels: one is read, one counted, one cleared
  KT_SHARED(int32, of_cluster, [2]);  // by turns: one is read while the next is written
  KT_SHARED(int32, is_full, [2]);     // by turns, too: a fast warp may raise the next before a slow one has read this
  kt::claim_t* const claims =
      PREDECESSORS ? reinterpret_cast<kt::claim_t*>(packed) : reinterpret_cast<kt::claim_t*>(distance);
  int32* const words = reinterpret_cast<int32*>(memory + 2 * SLOTS);
  const Tables tables = {memory, words, words + N_TABLES * SLOTS,
                         reinterpret_cast<uint32*>(words + (N_TABLES + 1) * SLOTS)};
  kt::Gathering beyond = {offsets, queue, pieces, counts};
  const int32 block = kt::block_in_cluster(), thread = kt::thread_in_block();
  const kt::Trace trace = {trace_rows};

  for (int32 level = 0; level < N_TABLES; ++level) tables.clear(level);
  if (thread < 3) sizes[thread] = 0;
  if (thread < 2) of_cluster[thread] = 1;
  if (thread < 2) is_full[thread] = 0;
  if (block == 0) {
    for (int32 i = thread; i < 3 * kt::N_COUNTS; i += BLOCK) counts[i] = 0;
    if (thread == 0) {
      *arrived = 0;
      trace.clear();
    }
  }
  kt::cluster_barrier();
  const uint32 hash = kt::hash_of(source);
  if (block == kt::share_of(hash, CLUSTER) && thread == 0) {
    const int32 slot = kt::slot_of(hash);
    tables.vertices_of(0)[slot] = static_cast<int32>(source);
    tables.rows_of(0)[slot] = packed_row(kt::row_of(offsets, source));
    if (PREDECESSORS) tables.claimants_of(0)[slot] = static_cast<uint32>(source);
  }
  kt::block_barrier();
  int64 walked = 0, began = trace.now();
  int32 level = 0, n_left = 0;
  for (;; ++level) {
    // What was read in the last step, and is filled in the next.
    tables.clear(level + 2);
    if (thread == 0) sizes[(level + 1) % 3] = 0;
    keep_new(tables, claims, level, sizes + level % 3, is_full + level % 2);
    kt::block_barrier();
    n_left = sizes[level % 3];
    if (level >= last_level) {
      kt::cluster_barrier();  // all have counted
      if (level && size_of_cluster(sizes + (level - 1) % 3) == 0) --level;
      break;
    }
    if (n_wanted) {
      kt::cluster_barrier();  // all have claimed what is new
      if (!kt::is_one_unreached(claims, wanted, n_wanted)) break;
    }
    // The last warp has the least to walk.
    if (level && thread >= BLOCK - kt::WARP) {
      const int32 of_all = size_of_cluster(sizes + (level - 1) % 3);
      if (kt::lane() == 0) of_cluster[level % 2] = of_all;
    }
    const Handing handing = {offsets, tables.rows_of(level + 1), tables.vertices_of(level + 1),
                             tables.claimants_of(level + 1), is_full + level % 2};
    const int32* const here = tables.vertices_of(level);
    int64 walking = 0;
    const auto rows = [&](int64 i, bool is_first) {
      const int32 slot = tables.frontier[i];
      const kt::Row row = unpacked_row(static_cast<vertex_t>(here[slot]), tables.rows_of(level)[slot]);
      if (is_first) walking += row.end - row.begin;
      return row;
    };
    // Where the flag is up nothing of this level counts.
    if (!kt::any(kt::ALL_LANES, kt::racy_load(is_full + level % 2) != 0))
      kt::edges_by_virtual_warp(targets, kt::one_block(), n_left, kt::lanes_a_row<int32>(BLOCK, n_left), rows, handing);
    kt::cluster_barrier();
    if (kt::racy_load(is_full + level % 2)) break;
    walked += walking;
    if (TRACE && level && block == 0 && thread == 0)
      trace.note(began, kt::CLUSTER_LEVEL, level - 1, of_cluster[level % 2], 0);
    began = trace.now();
    if (of_cluster[level % 2] == 0) {
      --level;  // it was empty
      n_left = 0;
      break;
    }
  }
  // The frontier that is left, as if the grid had found it.
  const int32* const here = tables.vertices_of(level);
  for (int32 i = thread; i < n_left; i += BLOCK)
    beyond.store(beyond.reserve(1), static_cast<vertex_t>(here[tables.frontier[i]]));
  if (beyond.edges) kt::atomic_add(counts + kt::EDGES, beyond.edges);
  if (walked) kt::atomic_add(counts + kt::WALKED, walked);
  if (block == 0 && thread == 0) counts[kt::LEVEL] = level;
  kt::cluster_barrier();  // nobody looks at another block's memory any more
}
