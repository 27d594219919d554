// The first levels of a BFS, by one cluster of thread blocks, while its shared memory holds the frontier.
//
// Levels are separated by a cluster barrier. Each warp distributes the vertices that it claims
// over the blocks of the cluster round-robin, so that all have work. A level after which the
// frontier is too large raises a flag in all blocks and ends the kernel: a queue overflowed, or
// a warp claimed vertices with more than BATCH_EDGES edges at once. The frontier then goes to the
// queue in global memory, from which the persistent kernel continues (kernels/bfs_persistent_state.cuh).
//
// An empty frontier is noticed one level late: the counts of the other blocks are read while
// that level runs.
//
// Frontier    two queues of QUEUE_CAPACITY entries per block in shared memory; overflow goes to the
//             queue in global memory
// Visited     the claims: an atomic minimum per edge
//
// Reads:  the adjacency lists of the frontier.
// Writes: claims; at the end the frontier that is left.
//
// Compile-time constants, other than those of bfs_persistent_state.cuh:
//   BLOCK, MIN_BLOCKS   threads per block, and blocks per multiprocessor
//   CLUSTER             blocks per cluster
//   QUEUE_CAPACITY      entries per queue
//   BATCH_EDGES         edges of the vertices that a warp claims at once, at most
//   TRACE               iterations that are traced; 0: none
#include <kt/advance.cuh>
#include <kt/cluster.cuh>
#include <kt/trace.cuh>

#include "bfs_persistent_state.cuh"

// What the host passes (bfs/persistent.py).
struct ClusterArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  vertex_t source;
  int32 last_level;
  KT_NULLABLE const int64* target_vertices;  // vertices whose distances end the search
  int64 n_target_vertices;
  KT_NULLABLE uint64* packed;  // [n_vertices] claims, with PREDECESSORS
  vertex_t* queue;             // [n_vertices]
  uint64* chunks;
  kt::LoopState* states;  // [3]
  uint32* arrived;        // of the persistent kernel's barrier
  int32* distance;        // [n_vertices]; the claims, without PREDECESSORS
  KT_NULLABLE int64* trace;
};

namespace {

struct Entry {
  offset_t begin;
  vertex_t v;
  int32 degree;  // at most BATCH_EDGES + 1: a frontier with more edges is left to the persistent kernel
};

// What the warps share in one level.
struct Step {
  const offset_t* offsets;
  const vertex_t* targets;
  kt::claim_t* claims;
  int32 level;
  Entry* there;  // in each block of the cluster, like the next two
  int32* found;
  int32* is_full;
  kt::FrontierBuilder* beyond;

  KT_DEVICE bool claim(bool valid, vertex_t u, vertex_t v) const {
    // No load before the atomic: it would be one more round trip to the L2.
    return valid && kt::level_of(kt::atomic_min(claims + v, kt::claim_of(level + 1, u))) == kt::UNREACHED;
  }
  // Several warps may raise the flag; all store the same value.
  KT_DEVICE void raise() const {
    if (kt::lane() < CLUSTER) kt::racy_store(kt::shared_of(is_full, kt::lane()), 1);
  }
};

// Claims the heads of edges for the next level and queues them. All lanes of a warp call it.
struct Queueing {
  const Step& step;
  int32 next_block;  // the block that takes the next vertices, modulo CLUSTER

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    // Loaded before the claim is decided, so that both are in flight together: one round trip less for each claimed
    // vertex (0.15 us from the L2, 0.6 us from memory), one unused load for the others.
    const kt::AdjacencyList list = kt::adjacency_list(step.offsets, v);
    const bool discovered = step.claim(valid, u, v);
    const uint32 lanes = kt::ballot(ALL_LANES, discovered);
    if (lanes == 0) return;

    // Reserve places in the queue of one block of the cluster for all that the warp claimed.
    const int32 block = next_block++ % CLUSTER;
    int32 in_queue = 0;
    if (kt::lane() == 0) in_queue = kt::atomic_add(kt::shared_of(step.found, block), kt::count_lanes(lanes));
    in_queue = kt::broadcast(ALL_LANES, in_queue, 0);
    const int32 place = in_queue + kt::count_lanes(lanes & kt::lanes_before());

    // Store each vertex there, or beyond if the queue is full; too many edges or vertices end the kernel.
    const offset_t degree = discovered ? list.end - list.begin : 0;
    const int32 walked = static_cast<int32>(degree < BATCH_EDGES ? degree : BATCH_EDGES + 1);
    if (discovered && place < QUEUE_CAPACITY) kt::shared_of(step.there, block)[place] = {list.begin, v, walked};
    if (discovered && place >= QUEUE_CAPACITY) step.beyond->store(step.beyond->reserve(1), v);
    if (kt::reduce_add(ALL_LANES, walked) > BATCH_EDGES || in_queue + kt::count_lanes(lanes) > QUEUE_CAPACITY)
      step.raise();
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(KT_BOUNDS) KT_CLUSTER(CLUSTER) bfs_cluster(const ClusterArgs args) {
  KT_SHARED(Entry, entries, [2 * QUEUE_CAPACITY]);
  KT_SHARED(int32, sizes, [3]);       // of the queue in three steps: one is read, one written, one cleared
  KT_SHARED(int32, of_cluster, [2]);  // by the parity of the step: one is read while the other is written
  KT_SHARED(int32, is_full, [2]);  // likewise: a fast warp may raise the next flag before a slow one has read this one
  kt::claim_t* const claims =
      PREDECESSORS ? reinterpret_cast<kt::claim_t*>(args.packed) : reinterpret_cast<kt::claim_t*>(args.distance);
  const offset_t* __restrict__ const offsets = args.offsets;
  const vertex_t* __restrict__ const targets = args.targets;
  const vertex_t source = args.source;
  kt::LoopState& first = args.states[0];
  kt::FrontierBuilder beyond = {offsets, args.queue, args.chunks, &first};
  const int32 block = kt::block_in_cluster(), thread = kt::thread_in_block();
  const kt::Trace trace = {args.trace};

  // Block 0 starts with the source in its queue, unless the source has too many edges, which ends the search at once.
  const kt::AdjacencyList list = kt::adjacency_list(offsets, source);
  const bool is_large = list.end - list.begin > BATCH_EDGES;
  if (thread < 3) sizes[thread] = thread == 0 && block == 0 && !is_large ? 1 : 0;
  if (thread == 0) {
    is_full[0] = 0;
    is_full[1] = is_large;
  }
  if (block == 0) {
    for (int32 i = thread; i < 3 * kt::LoopStates::N_WORDS; i += BLOCK) kt::LoopStates::words_of(first)[i] = 0;
    if (thread == 0) {
      entries[0] = {list.begin, source, static_cast<int32>(is_large ? 0 : list.end - list.begin)};
      claims[source] = kt::claim_of(0, source);
      *args.arrived = 0;
      trace.clear();
    }
  }
  kt::cluster_barrier();

  int64 walked = 0;
  int32 level = 0, step = 0;
  while (!kt::racy_load(is_full + (step + 1) % 2) && level < args.last_level) {
    // Stop if every target is reached.
    const int64 began = trace.now();
    if (args.n_target_vertices) {
      const bool is_missing = kt::is_one_unreached(claims, args.target_vertices, args.n_target_vertices);
      kt::cluster_barrier();  // every block has read the claims before a thread makes more
      if (!is_missing) break;
    }

    // Count the frontier of the cluster, while other warps begin with their edges. The last warp has the fewest.
    const Entry* const here = entries + step % 2 * QUEUE_CAPACITY;
    const int32 size = sizes[step % 3];
    if (thread >= BLOCK - WARP) {
      const int32 of_block = kt::lane() < CLUSTER ? *kt::shared_of(sizes + step % 3, kt::lane()) : 0;
      const int32 of_all = kt::sum_through(of_block);
      if (kt::lane() == WARP - 1) of_cluster[step % 2] = of_all;
    }
    if (thread == 0) sizes[(step + 2) % 3] = 0;

    // Walk the edges of the block's queue; what they claim goes to the queues of the next step.
    Entry* const there = entries + (step + 1) % 2 * QUEUE_CAPACITY;
    const Step now = {offsets, targets, claims, level, there, sizes + (step + 1) % 3, is_full + step % 2, &beyond};
    Queueing queueing = {now, block + kt::warp_in_block() + step};
    const auto lists = [&](int64 i, bool is_first) -> kt::AdjacencyList {
      const Entry entry = here[i];
      if (is_first) walked += entry.degree;
      return {entry.v, entry.begin, entry.begin + entry.degree};
    };
    const int32 width = kt::lanes_per_list<int32>(BLOCK, size);
    kt::edges_by_virtual_warp(targets, kt::one_block(), size, width, lists, queueing);
    kt::cluster_barrier();

    // The frontier was empty, and has claimed nothing: the search is over.
    const int32 in_all = of_cluster[step % 2];
    if (TRACE && block == 0 && thread == 0) trace.add(began, kt::CLUSTER_LEVEL, level, in_all, 0);
    if (in_all == 0) break;
    ++level;
    ++step;
  }

  // Store the frontier that is left as an iteration of the persistent kernel does.
  const Entry* const left = entries + step % 2 * QUEUE_CAPACITY;
  const int32 n_left = sizes[step % 3];
  for (int32 i = thread; i < n_left && i < QUEUE_CAPACITY; i += BLOCK) beyond.store(beyond.reserve(1), left[i].v);
  if (is_large && block == 0 && thread == 0) beyond.store(beyond.reserve(1), source);
  if (beyond.edges) kt::atomic_add(&first.edges, beyond.edges);
  if (walked) kt::atomic_add(&first.walked, walked);
  if (block == 0 && thread == 0) first.level = level;
}
