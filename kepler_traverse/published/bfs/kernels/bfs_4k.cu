// BFS-4K: one level by many blocks, or several levels by a single block.
//
//   bfs_4k_many_blocks    one level (5.5)
//   bfs_4k_single_block   several levels, with the frontier in shared memory (5.5)
//   bfs_4k_child          the adjacency list of one high-degree vertex (5.3)
//
// Frontier    queues of the threads (5.1), emptied into a queue in global memory that counts past its
//             capacity
// Visited     the distances, with plain stores: threads that find a vertex unreached store the same
//             level and all of them queue it, which costs time only
// Duplicates  a hash table in shared memory finds most of them (Hash64, 6); or a compare-and-swap
//             claims each vertex, so there are none
//
// Predecessors are the smallest, as in push.cu.
//
//   threads   one virtual warp per vertex, or one lane per edge (kt/advance.cuh)
//   shared    the table of Hash64; in a single block two queues before it
//   constants DUPLICATES, APPEND, HEAVY, COUNTING: see bfs_4k.py
//
// Busato, Bombieri. BFS-4K: an efficient implementation of BFS for Kepler GPU
// architectures. IEEE TPDS 2015. Numbers in parentheses are its sections.
#include <kt/advance.cuh>
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>

#include "advances.cuh"
#include "empty_thread_queues.cuh"

// What the host passes (published/bfs/bfs_4k.py). Child kernels take the same struct: given a smaller one, they read
// the arguments of the kernel that had launched them (H100, CUDA 13).
struct LevelArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* frontier;
  int64 n_frontier;
  vertex_t u;                   // of a child kernel
  const vertex_t* high_degree;  // all vertices of min_high_degree edges or more
  int32 n_high_degree;
  offset_t min_high_degree;
  int32 level;    // of the frontier
  int32 advance;  // Advance
  int32 width;    // lanes per vertex, of a single block at least
  int32 coalesced_from;
  int32 edges_per_child;
  int32 hash_bits;
  // Of a single block.
  int32 last_level;
  KT_NULLABLE const int64* target_vertices;  // the search ends when all of them are reached
  int64 n_target_vertices;
  int32 max_frontier;    // for another level in this launch
  int32 queue_capacity;  // of each of the two queues in shared memory
  int32 max_width;
  int32 discover_below;  // smaller frontiers use the Advance in `discovery`
  int32 discovery;
  int64 capacity;  // of next
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  int64* counters;
  int64* counted;
};

namespace {

enum Duplicates { KEPT, HASHED, CLAIMED };
enum Append { BY_THREAD, BY_WARP, BY_BLOCK };
enum HighDegree { NOT_SEPARATE, BY_BLOCKS, BY_CHILDREN };
enum Advance { VIRTUAL_WARPS, SHARED_READS, DISCOVERY, EXTENDED };
enum Counted { DUPLICATES_FOUND, CONFLICTS, QUEUED, EDGES, CHILDREN };

// Hash64 (6): a hash table of words that hold a vertex and the number of a thread. A thread of a block that reads
// another thread's word for the same vertex drops the vertex. The last thread to write does not read another's word,
// so at least one thread keeps each vertex.
struct Hash64 {
  uint64* table;  // null if a vertex cannot come twice
  int32 bits;

  static constexpr int32 THREAD_BITS = 10;
  static constexpr uint64 GOLDEN_RATIO = 0x9E3779B97F4A7C15;

  // Returns whether a lane's vertex is discovered and no duplicate. All lanes call it.
  KT_DEVICE bool is_first(bool discovered, vertex_t v, int64* counted) const {
    const uint64 mine = static_cast<uint64>(v) << THREAD_BITS | static_cast<uint64>(kt::thread_in_block());
    uint64* const place = table + (static_cast<uint64>(v) * GOLDEN_RATIO >> (64 - bits));
    // The table is meant for races: any order of these stores and loads is right.
    if (discovered) kt::racy_store(place, mine);
    kt::warp_barrier(ALL_LANES);
    if (!discovered) return false;
    const uint64 there = kt::racy_load(place);
    if (there == mine) return true;
    const bool duplicate = there >> THREAD_BITS == static_cast<uint64>(v);
    if (COUNTING) kt::count(counted + (duplicate ? DUPLICATES_FOUND : CONFLICTS));
    return !duplicate;
  }
};

// Visits the targets of edges and queues those that are discovered. All lanes call it.
template <typename To>
struct Expansion {
  kt::Reach reach;  // the next level
  int32 coalesced_from;
  int64* counted;
  Hash64 hash;
  To to;
  kt::LocalQueue found;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    bool discovered = valid && (DUPLICATES == CLAIMED ? reach.claim(u, v) : reach.visit(u, v));
    if (COUNTING && valid) kt::count(counted + EDGES);
    if (DUPLICATES == HASHED && hash.table && kt::any(ALL_LANES, discovered))
      discovered = hash.is_first(discovered, v, counted);
    if (COUNTING && discovered) kt::count(counted + QUEUED);
    if (discovered) found.push(v);
    if (kt::any(ALL_LANES, found.is_full())) empty();
  }

  // By the warp (5.1, 5.6), also if APPEND is BY_BLOCK: a full queue cannot wait for the other warps.
  KT_DEVICE void empty() {
    if (APPEND == BY_THREAD)
      kt::empty_by_thread(found, to);
    else
      found.empty_into(to, coalesced_from);
  }

  // All threads of a block call it, with two words of shared memory, the first zero.
  KT_DEVICE void finish(int64* block_sizes) {
    if (APPEND == BY_BLOCK)
      kt::empty_by_block(found, to, block_sizes, coalesced_from);
    else
      empty();
  }
};

template <typename Args, typename To>
KT_DEVICE Expansion<To> expansion(const Args& args, int32 level, Hash64 hash, To to) {
  return {{level + 1, args.distance, args.predecessor}, args.coalesced_from, args.counted, hash, to, {}};
}

// Expands a frontier, except its high-degree vertices, which are expanded separately. Returns whether this thread found
// one of them.
template <typename List, typename Expand>
KT_DEVICE bool expand_frontier(const LevelArgs& args, kt::Team team, List frontier, int64 size, int32 advance,
                               int32 width, Expand& expand) {
  bool found_high_degree = false;
  const auto lists = [&](int64 i, bool) {
    const kt::AdjacencyList list = kt::adjacency_list(args.offsets, frontier[i]);
    if (HEAVY == NOT_SEPARATE || list.end - list.begin < args.min_high_degree) return list;
    found_high_degree = true;
    return kt::AdjacencyList{};
  };
  if (advance == VIRTUAL_WARPS)
    kt::edges_by_virtual_warp(args.targets, team, size, width, lists, expand);
  else if (advance == SHARED_READS)
    kt::edges_by_shared_reads(args.targets, team, size, lists, expand);
  else
    kt::edges_by_discovery(args.targets, team, size, advance == EXTENDED, lists, expand);
  return found_high_degree;
}

// Expands the high-degree vertices that are on the frontier, one block per vertex. It reads the list of all such
// vertices of the graph, so a duplicate in the frontier does not visit a long adjacency list twice.
template <typename Expand>
KT_DEVICE void expand_high_degree(const LevelArgs& args, int32 first, int32 stride, Expand& expand) {
  for (int32 i = first; i < args.n_high_degree; i += stride) {
    const vertex_t u = kt::load_constant(args.high_degree + i);
    // Other threads store only later levels here, so all threads of the block decide alike.
    if (kt::racy_load(args.distance + u) != expand.reach.level - 1) continue;
    kt::edges_of_list(args.targets, kt::one_block(), kt::adjacency_list(args.offsets, u), expand);
  }
}

}  // namespace

// Expands one high-degree vertex (5.3). The number of blocks depends on its degree.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_child(const LevelArgs args) {
  KT_SHARED(int64, block_sizes, [2]);
  if (kt::thread_in_block() == 0) *block_sizes = 0;
  kt::block_barrier();
  auto expand = expansion(args, args.level, {nullptr, 0}, kt::Appender{args.next, args.capacity, args.counters});
  kt::edges_of_list(args.targets, kt::whole_grid(), kt::adjacency_list(args.offsets, args.u), expand);
  expand.finish(block_sizes);
}

// One level. counters[0] becomes the size of the next frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_many_blocks(const LevelArgs args) {
  KT_DYNAMIC_SHARED(uint64, table);
  KT_SHARED(int64, block_sizes, [2]);
  if (kt::thread_in_block() == 0) *block_sizes = 0;
  kt::block_barrier();
  auto expand =
      expansion(args, args.level, {table, args.hash_bits}, kt::Appender{args.next, args.capacity, args.counters});
#if HEAVY == 2
  for (int64 i = kt::thread_id(); i < args.n_high_degree; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(args.high_degree + i);
    // As in expand_high_degree. The host makes the list no longer than MAX_CHILDREN.
    if (kt::racy_load(args.distance + u) != args.level) continue;
    const int64 blocks = (kt::degree_of(args.offsets, u) + args.edges_per_child - 1) / args.edges_per_child;
    if (COUNTING) kt::count(args.counted + CHILDREN);
    LevelArgs child = args;
    child.u = u;
    kt::launch_child(bfs_4k_child, static_cast<int32>(blocks), child);
  }
#endif
  expand_frontier(args, kt::whole_grid(), kt::Queue{args.frontier, args.n_frontier}, args.n_frontier, args.advance,
                  args.width, expand);
  if (HEAVY == BY_BLOCKS) expand_high_degree(args, kt::block_id(), kt::n_blocks(), expand);
  expand.finish(block_sizes);
}

// Levels up to last_level while the frontier has at most max_frontier vertices. Two queues of `queue_capacity` vertices
// are in shared memory. What exceeds them is in `next`, at the same index.
//
//   counters[0]   the size of the last frontier, which is in `next` as a whole
//   counters[2]   the number of levels
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_single_block(const LevelArgs args) {
  const int32 queue_capacity = args.queue_capacity;
  const int64 capacity = args.capacity;
  vertex_t* const next = args.next;
  int32 level = args.level;
  KT_DYNAMIC_SHARED(uint64, memory);
  KT_SHARED(int64, sizes, [3]);  // of the frontiers of three levels: one is read, one written, one cleared
  vertex_t* const queues = reinterpret_cast<vertex_t*>(memory);
  uint64* const table = reinterpret_cast<uint64*>(queues + 2 * queue_capacity);

  const int32 first_level = level;
  int64 size = args.n_frontier;
  for (int64 i = kt::thread_in_block(); i < size; i += BLOCK) queues[i] = kt::load_constant(args.frontier + i);
  if (kt::thread_in_block() < 3) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  while (true) {
    const int32 iteration = (level - first_level) % 3;
    const vertex_t* const here = queues + (level - first_level) % 2 * queue_capacity;
    vertex_t* const there = queues + (level + 1 - first_level) % 2 * queue_capacity;
    int64* const found = sizes + (iteration + 1) % 3;
    if (kt::thread_in_block() == 0) sizes[(iteration + 2) % 3] = 0;
    const auto store = [=](int64 place, vertex_t v) {
      if (place < queue_capacity)
        there[place] = v;
      else if (place < capacity)
        next[place] = v;
    };
    const auto to = kt::into([=](int64 n) { return kt::atomic_add(found, n); }, store);
    auto expand = expansion(args, level, {table, args.hash_bits}, to);
    // 5.2: as many lanes per vertex as there are threads for.
    int32 width = args.width;
    while (width < args.max_width && 2 * width * size <= BLOCK) width *= 2;
    const bool found_high_degree = expand_frontier(
        args, kt::one_block(), here, size, size < args.discover_below ? args.discovery : VIRTUAL_WARPS, width, expand);
    if (HEAVY != NOT_SEPARATE && kt::block_any(found_high_degree)) expand_high_degree(args, 0, 1, expand);
    expand.empty();
    kt::block_barrier();
    size = *found;
    ++level;
    bool is_last = size == 0 || size > args.max_frontier || level == args.last_level;
    if (!is_last && args.n_target_vertices) {
      bool is_missing = false;
      for (int64 i = kt::thread_in_block(); i < args.n_target_vertices; i += BLOCK)
        // The distances of this level were written before the barrier.
        is_missing |= kt::racy_load(args.distance + kt::load_constant(args.target_vertices + i)) == kt::UNREACHED;
      is_last = !kt::block_any(is_missing);
    }
    if (is_last) {
      const int64 in_shared = size < queue_capacity ? size : queue_capacity;
      for (int64 i = kt::thread_in_block(); i < in_shared && i < capacity; i += BLOCK) next[i] = there[i];
      break;
    }
  }
  if (kt::thread_in_block() == 0) {
    args.counters[0] = size;
    args.counters[2] = level - first_level;
  }
}
