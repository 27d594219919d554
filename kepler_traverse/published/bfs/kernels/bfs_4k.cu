// BFS-4K: one level by many blocks, or several levels by a single block.
//
//   bfs_4k_many_blocks    one level (5.5)
//   bfs_4k_single_block   several levels, with the frontier in shared memory (5.5)
//   bfs_4k_child          the adjacency list of one high-degree vertex (5.3)
//   bfs_4k_list_level     lists a level from the distances, after its queue overflowed
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
#include <kt/frontier_queue.cuh>

#include "advance_in_turn.cuh"
#include "empty_thread_queues.cuh"
#include "visit_nonatomic.cuh"

// What the host passes (published/bfs/bfs_4k.py).
struct ManyBlocksArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* frontier;
  kt::int64 n_frontier;
  const vertex_t* high_degree;  // all vertices of min_high_degree edges or more
  kt::int32 n_high_degree;
  offset_t min_high_degree;
  kt::int32 level;    // of the frontier
  kt::int32 advance;  // Advance
  kt::int32 width;    // lanes per vertex
  kt::int32 coalesced_from;
  kt::int32 edges_per_child;
  kt::int32 hash_bits;
  kt::int64 capacity;  // of next
  kt::int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  kt::int64* counters;
  kt::int64* counted;
};

struct SingleBlockArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* frontier;
  kt::int64 n_frontier;
  const vertex_t* high_degree;  // all vertices of min_high_degree edges or more
  kt::int32 n_high_degree;
  offset_t min_high_degree;
  kt::int32 level;  // of the frontier
  kt::int32 last_level;
  KT_NULLABLE const kt::int64* target_vertices;  // the search ends when all of them are reached
  kt::int64 n_target_vertices;
  kt::int32 max_frontier;    // for another level in this launch
  kt::int32 queue_capacity;  // of each of the two queues in shared memory
  kt::int32 min_width;       // lanes per vertex
  kt::int32 max_width;
  kt::int32 discover_below;  // smaller frontiers use the Advance in `discovery`
  kt::int32 discovery;
  kt::int32 coalesced_from;
  kt::int32 hash_bits;
  kt::int64 capacity;  // of next
  kt::int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  kt::int64* counters;
  kt::int64* counted;
};

// What bfs_4k_many_blocks passes.
struct ChildArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  vertex_t u;
  kt::int32 level;  // of u
  kt::int32 coalesced_from;
  kt::int64 capacity;  // of next
  kt::int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  kt::int64* counters;
  kt::int64* counted;
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
  kt::uint64* table;  // null if a vertex cannot come twice
  kt::int32 bits;

  static constexpr kt::int32 THREAD_BITS = 10;
  static constexpr kt::uint64 GOLDEN_RATIO = 0x9E3779B97F4A7C15;

  // Returns whether a lane's vertex is discovered and no duplicate. All lanes call it.
  KT_DEVICE bool is_first(bool discovered, vertex_t v, kt::int64* counted) const {
    const kt::uint64 mine = static_cast<kt::uint64>(v) << THREAD_BITS | static_cast<kt::uint64>(kt::thread_in_block());
    kt::uint64* const place = table + (static_cast<kt::uint64>(v) * GOLDEN_RATIO >> (64 - bits));
    // The table is meant for races: any order of these stores and loads is right.
    if (discovered) kt::racy_store(place, mine);
    kt::warp_barrier(kt::ALL_LANES);
    if (!discovered) return false;
    const kt::uint64 there = kt::racy_load(place);
    if (there == mine) return true;
    const bool duplicate = there >> THREAD_BITS == static_cast<kt::uint64>(v);
    if (COUNTING) kt::count(counted + (duplicate ? DUPLICATES_FOUND : CONFLICTS));
    return !duplicate;
  }
};

struct Level {
  const offset_t* offsets;
  const vertex_t* targets;
  kt::int32 level;  // of the frontier
  kt::int32 coalesced_from;
  offset_t min_high_degree;
  kt::int32* distance;
  vertex_t* predecessor;  // may be null
  kt::int64* counted;
};

// Visits the targets of edges and queues those that are discovered. All lanes call it.
template <typename Reserve, typename Write>
struct Expansion {
  Level state;
  Hash64 hash;
  Reserve reserve;
  Write write_vertex;
  kt::LocalQueue found;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    bool discovered = valid && visit_target(u, v);
    if (COUNTING && valid) kt::count(state.counted + EDGES);
    if (DUPLICATES == HASHED && hash.table && kt::any(kt::ALL_LANES, discovered))
      discovered = hash.is_first(discovered, v, state.counted);
    if (COUNTING && discovered) kt::count(state.counted + QUEUED);
    if (discovered) found.push(v);
    if (kt::any(kt::ALL_LANES, found.is_full())) empty();
  }

  KT_DEVICE bool visit_target(vertex_t u, vertex_t v) const {
    const kt::int32 next_level = state.level + 1;
    // An old value can only be UNREACHED. Other threads may then visit v too, for the same level.
    kt::int32 hops = kt::racy_load(state.distance + v);
    bool discovered = false;
    if (hops == kt::UNREACHED) {
      if (DUPLICATES == CLAIMED) {
        discovered = kt::compare_and_swap(state.distance + v, kt::UNREACHED, next_level) == kt::UNREACHED;
      } else {
        kt::racy_store(state.distance + v, next_level);
        discovered = true;
      }
      hops = next_level;
    }
    if (state.predecessor && hops == next_level) kt::keep_smallest(state.predecessor + v, u);
    return discovered;
  }

  // By the warp (5.1, 5.6), also if APPEND is BY_BLOCK: a full queue cannot wait for the other warps.
  KT_DEVICE void empty() {
    if (APPEND == BY_THREAD)
      kt::empty_by_thread(found, reserve, write_vertex);
    else
      found.empty_into(state.coalesced_from, reserve, write_vertex);
  }

  // All threads of a block call it, with two words of shared memory, the first zero.
  KT_DEVICE void finish(kt::int64* block_sizes) {
    if (APPEND == BY_BLOCK)
      kt::empty_by_block(found, state.coalesced_from, block_sizes, reserve, write_vertex);
    else
      empty();
  }
};

template <typename Reserve, typename Write>
KT_DEVICE Expansion<Reserve, Write> expansion(Level state, Hash64 hash, Reserve reserve, Write write_vertex) {
  return {state, hash, reserve, write_vertex, {}};
}

// Expands a frontier, except its high-degree vertices, which are expanded separately. Returns whether this thread found
// one of them.
template <typename List, typename Expand>
KT_DEVICE bool expand_frontier(kt::Team team, List frontier, kt::int64 size, kt::int32 advance, kt::int32 width,
                               Expand& expand) {
  const Level state = expand.state;
  bool found_high_degree = false;
  const auto lists = [&](kt::int64 i, bool) {
    const kt::AdjacencyList list = kt::adjacency_list(state.offsets, frontier[i]);
    if (HEAVY == NOT_SEPARATE || list.end - list.begin < state.min_high_degree) return list;
    found_high_degree = true;
    return kt::AdjacencyList{};
  };
  if (advance == VIRTUAL_WARPS)
    kt::edges_by_virtual_warp(state.targets, team, size, width, lists, expand);
  else if (advance == SHARED_READS)
    kt::edges_by_shared_reads(state.targets, team, size, lists, expand);
  else
    kt::edges_by_discovery(state.targets, team, size, advance == EXTENDED, lists, expand);
  return found_high_degree;
}

// Expands the high-degree vertices that are on the frontier, one block per vertex. It reads the list of all such
// vertices of the graph, so a duplicate in the frontier does not visit a long adjacency list twice.
template <typename Expand>
KT_DEVICE void expand_high_degree(kt::int32 first, kt::int32 stride, const vertex_t* high_degree,
                                  kt::int32 n_high_degree, Expand& expand) {
  const Level state = expand.state;
  for (kt::int32 i = first; i < n_high_degree; i += stride) {
    const vertex_t u = kt::load_constant(high_degree + i);
    // Other threads store only later levels here, so all threads of the block decide alike.
    if (kt::racy_load(state.distance + u) != state.level) continue;
    kt::edges_of_list(state.targets, kt::one_block(), kt::adjacency_list(state.offsets, u), expand);
  }
}

}  // namespace

// Expands one high-degree vertex (5.3). The number of blocks depends on its degree.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_child(const ChildArgs args) {
  KT_SHARED(kt::int64, block_sizes, [2]);
  if (kt::thread_in_block() == 0) *block_sizes = 0;
  kt::block_barrier();
  const kt::int64 capacity = args.capacity;
  vertex_t* const next = args.next;
  kt::int64* const counters = args.counters;
  auto expand = expansion(
      {args.offsets, args.targets, args.level, args.coalesced_from, 0, args.distance, args.predecessor, args.counted},
      {nullptr, 0}, [=](kt::int64 n) { return kt::atomic_add(counters, n); },
      [=](kt::int64 place, vertex_t v) {
        if (place < capacity) next[place] = v;
      });
  kt::edges_of_list(args.targets, kt::whole_grid(), kt::adjacency_list(args.offsets, args.u), expand);
  expand.finish(block_sizes);
}

// One level. counters[0] becomes the size of the next frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_many_blocks(const ManyBlocksArgs args) {
  const offset_t* __restrict__ const offsets = args.offsets;
  const vertex_t* __restrict__ const targets = args.targets;
  const vertex_t* __restrict__ const high_degree = args.high_degree;
  const kt::int32 level = args.level;
  const kt::int64 capacity = args.capacity;
  kt::int32* const distance = args.distance;
  vertex_t* const next = args.next;
  kt::int64* const counters = args.counters;
  kt::int64* const counted = args.counted;
  KT_DYNAMIC_SHARED(kt::uint64, table);
  KT_SHARED(kt::int64, block_sizes, [2]);
  if (kt::thread_in_block() == 0) *block_sizes = 0;
  kt::block_barrier();
  auto expand = expansion(
      {offsets, targets, level, args.coalesced_from, args.min_high_degree, distance, args.predecessor, counted},
      {table, args.hash_bits}, [=](kt::int64 n) { return kt::atomic_add(counters, n); },
      [=](kt::int64 place, vertex_t v) {
        if (place < capacity) next[place] = v;
      });
#if HEAVY == 2
  for (kt::int64 i = kt::thread_id(); i < args.n_high_degree; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(high_degree + i);
    // As in expand_high_degree. The host makes the list no longer than MAX_CHILDREN.
    if (kt::racy_load(distance + u) != level) continue;
    const kt::AdjacencyList list = kt::adjacency_list(offsets, u);
    const kt::int64 blocks = (list.end - list.begin + args.edges_per_child - 1) / args.edges_per_child;
    if (COUNTING) kt::count(counted + CHILDREN);
    const ChildArgs child = {offsets,          targets, u,        level,  args.coalesced_from, capacity, distance,
                             args.predecessor, next,    counters, counted};
    kt::launch_child(bfs_4k_child, static_cast<kt::int32>(blocks), child);
  }
#endif
  expand_frontier(kt::whole_grid(), kt::Queue{args.frontier, args.n_frontier}, args.n_frontier, args.advance,
                  args.width, expand);
  if (HEAVY == BY_BLOCKS) expand_high_degree(kt::block_id(), kt::n_blocks(), high_degree, args.n_high_degree, expand);
  expand.finish(block_sizes);
}

// Levels up to last_level while the frontier has at most max_frontier vertices. Two queues of `queue_capacity` vertices
// are in shared memory. What exceeds them is in `next`, at the same index.
//
//   counters[0]   the size of the last frontier, which is in `next` as a whole
//   counters[2]   the number of levels
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_single_block(const SingleBlockArgs args) {
  const kt::int32 queue_capacity = args.queue_capacity;
  const kt::int64 capacity = args.capacity;
  kt::int32* const distance = args.distance;
  vertex_t* const next = args.next;
  kt::int32 level = args.level;
  KT_DYNAMIC_SHARED(kt::uint64, memory);
  KT_SHARED(kt::int64, sizes, [3]);  // of the frontiers of three levels: one is read, one written, one cleared
  vertex_t* const queues = reinterpret_cast<vertex_t*>(memory);
  kt::uint64* const table = reinterpret_cast<kt::uint64*>(queues + 2 * queue_capacity);

  const kt::int32 first_level = level;
  kt::int64 size = args.n_frontier;
  for (kt::int64 i = kt::thread_in_block(); i < size; i += BLOCK) queues[i] = kt::load_constant(args.frontier + i);
  if (kt::thread_in_block() < 3) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  while (true) {
    const kt::int32 iteration = (level - first_level) % 3;
    const vertex_t* const here = queues + (level - first_level) % 2 * queue_capacity;
    vertex_t* const there = queues + (level + 1 - first_level) % 2 * queue_capacity;
    kt::int64* const found = sizes + (iteration + 1) % 3;
    if (kt::thread_in_block() == 0) sizes[(iteration + 2) % 3] = 0;
    auto expand = expansion(
        {args.offsets, args.targets, level, args.coalesced_from, args.min_high_degree, distance, args.predecessor,
         args.counted},
        {table, args.hash_bits}, [=](kt::int64 n) { return kt::atomic_add(found, n); },
        [=](kt::int64 place, vertex_t v) {
          if (place < queue_capacity)
            there[place] = v;
          else if (place < capacity)
            next[place] = v;
        });
    // 5.2: as many lanes per vertex as there are threads for.
    kt::int32 width = args.min_width;
    while (width < args.max_width && 2 * width * size <= BLOCK) width *= 2;
    const bool found_high_degree = expand_frontier(
        kt::one_block(), here, size, size < args.discover_below ? args.discovery : VIRTUAL_WARPS, width, expand);
    if (HEAVY != NOT_SEPARATE && kt::block_any(found_high_degree))
      expand_high_degree(0, 1, args.high_degree, args.n_high_degree, expand);
    expand.empty();
    kt::block_barrier();
    size = *found;
    ++level;
    bool is_last = size == 0 || size > args.max_frontier || level == args.last_level;
    if (!is_last && args.n_target_vertices) {
      bool is_missing = false;
      for (kt::int64 i = kt::thread_in_block(); i < args.n_target_vertices; i += BLOCK)
        // The distances of this level were written before the barrier.
        is_missing |= kt::racy_load(distance + kt::load_constant(args.target_vertices + i)) == kt::UNREACHED;
      is_last = !kt::block_any(is_missing);
    }
    if (is_last) {
      const kt::int64 in_shared = size < queue_capacity ? size : queue_capacity;
      for (kt::int64 i = kt::thread_in_block(); i < in_shared && i < capacity; i += BLOCK) next[i] = there[i];
      break;
    }
  }
  if (kt::thread_in_block() == 0) {
    args.counters[0] = size;
    args.counters[2] = level - first_level;
  }
}

// Queues the vertices of one level, each of them once, after their queue overflowed.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_4k_list_level(kt::int64 n_vertices, kt::int32 level, const kt::int32* __restrict__ distance, kt::int64 capacity,
                      vertex_t* queue, kt::int64* counters) {
  kt::list_level(distance, n_vertices, level, {queue, capacity, counters});
}
