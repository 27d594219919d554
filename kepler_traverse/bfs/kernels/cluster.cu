// Cluster: the first levels of a BFS, while one cluster of blocks can hold the frontier.
//
// Its queues lie in shared memory, and every warp hands what it claims to the blocks
// of the cluster in turn, so that none runs dry. A level costs one barrier of the
// cluster. Where the frontier outgrows it - a queue overflows, or a warp claims
// vertices of more than BATCH_EDGES edges at once - the flag goes up in all blocks,
// the level is finished, and the frontier goes into the queue in global memory, for
// persistent.cu to go on. That no vertex is left is noticed a level late, which is
// when the other blocks' counts have arrived.
//
//   shared    two queues of ROOM rows
//   reads     the edges of the frontier    writes   claims; at the end the frontier
#include <kt/claims.cuh>
#include <kt/cluster.cuh>
#include <kt/edges.cuh>

namespace {

using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;

struct Entry {
  offset_t begin;
  vertex_t v;
  int32 degree;  // BATCH_EDGES + 1 stands for more: such a frontier is not walked here
};

struct Queues {
  Entry* there;     // in each block of the cluster
  int64* found;     // how many came for a queue
  int32* is_full;
};

// Claims the far ends of edges; all lanes of a warp come.
struct Claim {
  kt::claim_t* claims;
  const offset_t* offsets;
  int32 level;
  Queues queues;
  kt::Gathering* beyond;
  int32 turn;  // whose queue is next

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    // Straight to the atomic: a look before it would be one more trip to the L2.
    const bool fresh = valid && kt::level_of(kt::atomic_min(claims + v, kt::claim_of(level + 1, u))) == kt::UNREACHED;
    const uint32 lanes = kt::ballot(kt::ALL_LANES, fresh);
    if (lanes == 0) return;
    Entry entry = {0, v, 0};
    if (fresh) {
      const kt::Row row = kt::row_of(offsets, v);
      const offset_t degree = row.end - row.begin;
      entry.begin = row.begin;
      entry.degree = static_cast<int32>(degree < BATCH_EDGES ? degree : BATCH_EDGES + 1);
    }
    const int32 block = turn % CLUSTER;
    turn += 1;
    int64 first = 0;
    if (kt::lane() == 0)
      first = kt::atomic_add(kt::shared_of(queues.found, block), static_cast<int64>(kt::count_lanes(lanes)));
    first = kt::broadcast(kt::ALL_LANES, first, 0);
    const int64 place = first + kt::count_lanes(lanes & kt::lanes_before());
    if (fresh && place < ROOM) kt::shared_of(queues.there, block)[place] = entry;
    if (fresh && place >= ROOM) beyond->store(beyond->reserve(1), v);
    const int32 edges = kt::reduce_add(kt::ALL_LANES, entry.degree);
    // Whoever raises the flag, once or twice, stores the same.
    if ((edges > BATCH_EDGES || first + kt::count_lanes(lanes) > ROOM) && kt::lane() < CLUSTER)
      kt::racy_store(kt::shared_of(queues.is_full, kt::lane()), 1);
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) KT_CLUSTER(CLUSTER)
    bfs_cluster(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, vertex_t source,
                int32 last_level, const int64* __restrict__ wanted, int64 n_wanted, uint64* packed, vertex_t* queue,
                uint64* pieces, int64* counts, uint32* arrived, int32* distance) {
  KT_SHARED(Entry, entries, [2 * ROOM]);
  KT_SHARED(int64, sizes, [3]);  // of the queue in three levels: one is read, one written, one cleared
  KT_SHARED(int64, of_cluster, [2]);  // by turns: one is read while the next is written
  KT_SHARED(int32, is_full, [1]);
  kt::claim_t* const claims =
      PREDECESSORS ? reinterpret_cast<kt::claim_t*>(packed) : reinterpret_cast<kt::claim_t*>(distance);
  kt::Gathering beyond = {offsets, queue, pieces, counts};
  const int32 block = kt::block_in_cluster(), thread = kt::thread_in_block();

  const kt::Row row = kt::row_of(offsets, source);
  const bool is_large = row.end - row.begin > BATCH_EDGES;
  if (thread < 3) sizes[thread] = thread == 0 && block == 0 && !is_large;
  if (thread == 0) *is_full = is_large;
  if (block == 0) {
    for (int32 i = thread; i < 3 * kt::N_COUNTS; i += BLOCK) counts[i] = 0;
    if (thread == 0) {
      entries[0] = {row.begin, source, static_cast<int32>(row.end - row.begin)};
      claims[source] = kt::claim_of(0, source);
      *arrived = 0;
    }
  }
  kt::cluster_barrier();
  int64 walked = 0;
  int32 level = 0;
  for (;; ++level) {
    if (kt::racy_load(is_full) || level == last_level) break;
    if (n_wanted) {
      const bool is_missing = kt::is_one_unreached(claims, wanted, n_wanted);
      kt::cluster_barrier();  // all have looked before anybody claims more
      if (!is_missing) break;
    }
    const Entry* const here = entries + level % 2 * ROOM;
    const int64 size = sizes[level % 3];
    if (thread < kt::WARP) {
      int64 in_all = thread < CLUSTER ? *kt::shared_of(sizes + level % 3, thread) : 0;
      in_all = kt::sum_through(in_all);
      if (thread == kt::WARP - 1) of_cluster[level % 2] = in_all;
    }
    if (thread == 0) sizes[(level + 2) % 3] = 0;
    Claim claim = {claims,
                   offsets,
                   level,
                   {entries + (level + 1) % 2 * ROOM, sizes + (level + 1) % 3, is_full},
                   &beyond,
                   block + kt::warp_in_block() + level};
    const auto rows = [&](int64 i, bool is_first) -> kt::Row {
      const Entry entry = here[i];
      if (is_first) walked += entry.degree;
      return {entry.v, entry.begin, entry.begin + entry.degree};
    };
    const int32 width = kt::lanes_a_row(BLOCK, size);
    kt::edges_by_virtual_warp(targets, kt::one_block(), size, width, rows, claim);
    kt::cluster_barrier();
    if (of_cluster[level % 2] == 0) break;
  }
  // The frontier that is left, as if the grid had found it.
  const int64 size = sizes[level % 3];
  const Entry* const here = entries + level % 2 * ROOM;
  for (int64 i = thread; i < size && i < ROOM; i += BLOCK) beyond.store(beyond.reserve(1), here[i].v);
  if (is_large && block == 0 && thread == 0) beyond.store(beyond.reserve(1), source);
  if (beyond.edges) kt::atomic_add(counts + kt::EDGES, beyond.edges);
  if (walked) kt::atomic_add(counts + kt::WALKED, walked);
  if (block == 0 && thread == 0) counts[kt::LEVEL] = level;
}
