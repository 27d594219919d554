// BFS-4K: one level by many blocks, or several levels by a single one.
//
// Claims are plain stores: two threads that find a vertex unreached both store the
// same level and both queue it, which costs time and harms nobody. Hash64 finds
// most of those duplicates in shared memory; ATOMIC claims with a compare-and-swap
// instead. A queue that has no room keeps counting, and the host lists the level
// out of the distances. Predecessors are the smallest, as in push.cu.
//
//   threads   a virtual warp a vertex, or a lane an edge (kt/advance.cuh)
//   shared    Hash64 table; a single block's two queues before it
//   constants DUPLICATES, APPEND, HEAVY, COUNTING: see bfs_4k.py
//
// Busato, Bombieri. BFS-4K: an efficient implementation of BFS for Kepler GPU
// architectures. IEEE TPDS 2015; the sections stand beside the code.
#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/thread_queue.cuh>

// What the host passes (bfs/published/bfs_4k.py).
struct ManyBlocksArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* frontier;
  kt::int64 n_frontier;
  const vertex_t* heavy;  // all vertices of heavy_degree edges or more
  kt::int32 n_heavy;
  offset_t heavy_degree;
  kt::int32 level;  // of the frontier
  kt::int32 walk;   // Walk
  kt::int32 width;  // lanes per vertex
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
  const vertex_t* heavy;  // all vertices of heavy_degree edges or more
  kt::int32 n_heavy;
  offset_t heavy_degree;
  kt::int32 level;  // of the frontier
  kt::int32 last_level;
  KT_NULLABLE const kt::int64* target_vertices;  // vertices whose distances end the search
  kt::int64 n_target_vertices;
  kt::int32 threshold;       // the largest frontier for one block
  kt::int32 queue_capacity;  // of each of the two queues in shared memory
  kt::int32 min_width;       // lanes per vertex
  kt::int32 max_width;
  kt::int32 discover_below;  // frontiers smaller than this take the Walk in `discovery`
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

namespace {

enum Duplicates { KEPT, HASHED, CLAIMED };
enum Append { ALONE, BY_WARP, BY_BLOCK };
enum Heavy { WITH_THE_REST, BY_BLOCKS, BY_CHILDREN };
enum Walk { VIRTUAL_WARPS, SHARED_READS, DISCOVERY, EXTENDED };
enum Counted { DUPLICATES_FOUND, CONFLICTS, QUEUED, EDGES, CHILDREN };

// Hash64 (section 6): a table of (vertex, thread) in one word each. Of the threads of
// a block that come with the same vertex, any thread that reads another's entry for it drops
// it, and the last to write cannot read one. So one of them always keeps the vertex.
struct Hash64 {
  kt::uint64* table;  // null: none, where a vertex cannot come twice
  kt::int32 bits;

  static constexpr kt::int32 THREAD_BITS = 10;
  static constexpr kt::uint64 GOLDEN_RATIO = 0x9E3779B97F4A7C15;

  // Whether a lane's vertex is fresh and no duplicate; all lanes come.
  KT_DEVICE bool is_first(bool discovered, vertex_t v, kt::int64* counted) const {
    const kt::uint64 mine = static_cast<kt::uint64>(v) << THREAD_BITS | static_cast<kt::uint64>(kt::thread_in_block());
    kt::uint64* const place = table + (static_cast<kt::uint64>(v) * GOLDEN_RATIO >> (64 - bits));
    // Races are what the table is for: any order of these stores and loads is right.
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
  offset_t heavy_degree;
  kt::int32* distance;
  vertex_t* predecessor;  // null: not wanted
  kt::int64* counted;
};

// Claims the far ends of edges and gathers those that are new; all lanes come.
template <typename Reserve, typename Write>
struct Expansion {
  Level at;
  Hash64 hash;
  Reserve reserve;
  Write write_vertex;
  kt::LocalQueue found;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    bool discovered = valid && claim(u, v);
    if (COUNTING && valid) kt::count(at.counted + EDGES);
    if (DUPLICATES == HASHED && hash.table && kt::any(kt::ALL_LANES, discovered))
      discovered = hash.is_first(discovered, v, at.counted);
    if (COUNTING && discovered) kt::count(at.counted + QUEUED);
    if (discovered) found.push(v);
    if (kt::any(kt::ALL_LANES, found.is_full())) empty();
  }

  KT_DEVICE bool claim(vertex_t u, vertex_t v) const {
    const kt::int32 next_level = at.level + 1;
    // Old is UNREACHED only: then others may claim v, too, for the same level.
    kt::int32 hops = kt::racy_load(at.distance + v);
    bool discovered = false;
    if (hops == kt::UNREACHED) {
      if (DUPLICATES == CLAIMED) {
        discovered = kt::compare_and_swap(at.distance + v, kt::UNREACHED, next_level) == kt::UNREACHED;
      } else {
        kt::racy_store(at.distance + v, next_level);
        discovered = true;
      }
      hops = next_level;
    }
    if (at.predecessor && hops == next_level) kt::keep_smallest(at.predecessor + v, u);
    return discovered;
  }

  // 5.1 and 5.6: by the warp; a full queue cannot wait for the other warps.
  KT_DEVICE void empty() {
    if (APPEND == ALONE)
      found.empty_alone(reserve, write_vertex);
    else
      found.empty_into(at.coalesced_from, reserve, write_vertex);
  }

  // All threads of a block come, with two words of shared memory, the first zero.
  KT_DEVICE void finish(kt::int64* taken) {
    if (APPEND == BY_BLOCK)
      found.empty_together(at.coalesced_from, taken, reserve, write_vertex);
    else
      empty();
  }
};

template <typename Reserve, typename Write>
KT_DEVICE Expansion<Reserve, Write> expansion(Level at, Hash64 hash, Reserve reserve, Write write_vertex) {
  return {at, hash, reserve, write_vertex, {}};
}

// The rows of a frontier, but for those of heavy vertices, whose turn comes apart.
template <typename List, typename Expand>
KT_DEVICE bool expand_frontier(kt::Team team, List frontier, kt::int64 size, kt::int32 walk, kt::int32 width,
                               Expand& expand) {
  const Level at = expand.at;
  bool met_heavy = false;
  const auto rows = [&](kt::int64 i, bool) {
    const kt::AdjacencyList row = kt::adjacency_list(at.offsets, frontier[i]);
    if (HEAVY == WITH_THE_REST || row.end - row.begin < at.heavy_degree) return row;
    met_heavy = true;
    return kt::AdjacencyList{};
  };
  if (walk == VIRTUAL_WARPS)
    kt::edges_by_virtual_warp(at.targets, team, size, width, rows, expand);
  else if (walk == SHARED_READS)
    kt::edges_by_shared_reads(at.targets, team, size, rows, expand);
  else
    kt::edges_by_discovery(at.targets, team, size, walk == EXTENDED, rows, expand);
  return met_heavy;
}

// Those of a few heavy vertices that are on the frontier, a block each. A list of them
// all, so that no duplicate in the frontier makes anybody walk such a row twice.
template <typename Expand>
KT_DEVICE void expand_heavy(kt::int32 first, kt::int32 stride, const vertex_t* heavy, kt::int32 n_heavy,
                            Expand& expand) {
  const Level at = expand.at;
  for (kt::int32 i = first; i < n_heavy; i += stride) {
    const vertex_t u = kt::load_constant(heavy + i);
    // Others store later levels here, or none: all threads see the same answer.
    if (kt::racy_load(at.distance + u) != at.level) continue;
    kt::edges_of_list(at.targets, kt::one_block(), kt::adjacency_list(at.offsets, u), expand);
  }
}

}  // namespace

// The row of one heavy vertex (5.3), by as many blocks as it is worth.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_4k_child(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, vertex_t u,
                 kt::int32 level, kt::int32 coalesced_from, kt::int64 capacity, kt::int32* distance,
                 vertex_t* predecessor, vertex_t* next, kt::int64* counters, kt::int64* counted) {
  KT_SHARED(kt::int64, taken, [2]);
  if (kt::thread_in_block() == 0) *taken = 0;
  kt::block_barrier();
  auto expand = expansion(
      {offsets, targets, level, coalesced_from, 0, distance, predecessor, counted}, {nullptr, 0},
      [=](kt::int64 n) { return kt::atomic_add(counters, n); },
      [=](kt::int64 place, vertex_t v) {
        if (place < capacity) next[place] = v;
      });
  kt::edges_of_list(targets, kt::whole_grid(), kt::adjacency_list(offsets, u), expand);
  expand.finish(taken);
}

// One level (5.5, multi-block). Into counters[0]: the size of the next frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_many_blocks(const ManyBlocksArgs args) {
  const offset_t* __restrict__ const offsets = args.offsets;
  const vertex_t* __restrict__ const targets = args.targets;
  const vertex_t* __restrict__ const heavy = args.heavy;
  const kt::int32 level = args.level;
  const kt::int64 capacity = args.capacity;
  kt::int32* const distance = args.distance;
  vertex_t* const next = args.next;
  kt::int64* const counters = args.counters;
  kt::int64* const counted = args.counted;
  KT_DYNAMIC_SHARED(kt::uint64, table);
  KT_SHARED(kt::int64, taken, [2]);
  if (kt::thread_in_block() == 0) *taken = 0;
  kt::block_barrier();
  auto expand = expansion(
      {offsets, targets, level, args.coalesced_from, args.heavy_degree, distance, args.predecessor, counted},
      {table, args.hash_bits}, [=](kt::int64 n) { return kt::atomic_add(counters, n); },
      [=](kt::int64 place, vertex_t v) {
        if (place < capacity) next[place] = v;
      });
#if HEAVY == 2
  for (kt::int64 i = kt::thread_id(); i < args.n_heavy; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(heavy + i);
    // As in expand_heavy. The host sees to it that the list is no longer than MAX_CHILDREN.
    if (kt::racy_load(distance + u) != level) continue;
    const kt::AdjacencyList row = kt::adjacency_list(offsets, u);
    const kt::int64 blocks = (row.end - row.begin + args.edges_per_child - 1) / args.edges_per_child;
    if (COUNTING) kt::count(counted + CHILDREN);
    kt::launch_child(bfs_4k_child, static_cast<kt::int32>(blocks), offsets, targets, u, level, args.coalesced_from,
                     capacity, distance, args.predecessor, next, counters, counted);
  }
#endif
  expand_frontier(kt::whole_grid(), kt::Queue{args.frontier, args.n_frontier}, args.n_frontier, args.walk, args.width,
                  expand);
  if (HEAVY == BY_BLOCKS) expand_heavy(kt::block_id(), kt::n_blocks(), heavy, args.n_heavy, expand);
  expand.finish(taken);
}

// Levels up to last_level while the frontier has at most `threshold` vertices (5.5,
// single block). Two queues of `queue_capacity` vertices lie in shared memory; what a level
// finds beyond that goes to the queue in global memory, in its place. Into
// counters[0]: the size of the frontier it ends with, all of it in `next`; into
// counters[2]: the levels it took.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_4k_single_block(const SingleBlockArgs args) {
  const kt::int32 queue_capacity = args.queue_capacity;
  const kt::int64 capacity = args.capacity;
  kt::int32* const distance = args.distance;
  vertex_t* const next = args.next;
  kt::int32 level = args.level;
  KT_DYNAMIC_SHARED(kt::uint64, memory);
  KT_SHARED(kt::int64, sizes, [3]);  // of the frontiers of three levels in turn: one is read, one written, one cleared
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
        {args.offsets, args.targets, level, args.coalesced_from, args.heavy_degree, distance, args.predecessor,
         args.counted},
        {table, args.hash_bits}, [=](kt::int64 n) { return kt::atomic_add(found, n); },
        [=](kt::int64 place, vertex_t v) {
          if (place < queue_capacity)
            there[place] = v;
          else if (place < capacity)
            next[place] = v;
        });
    // 5.2: more lanes per vertex while there are threads to spare.
    kt::int32 width = args.min_width;
    while (width < args.max_width && 2 * width * size <= BLOCK) width *= 2;
    const bool met_heavy = expand_frontier(kt::one_block(), here, size,
                                           size < args.discover_below ? args.discovery : VIRTUAL_WARPS, width, expand);
    if (HEAVY != WITH_THE_REST && kt::block_any(met_heavy)) expand_heavy(0, 1, args.heavy, args.n_heavy, expand);
    expand.empty();
    kt::block_barrier();
    size = *found;
    ++level;
    bool is_last = size == 0 || size > args.threshold || level == args.last_level;
    if (!is_last && args.n_target_vertices) {
      bool is_missing = false;
      for (kt::int64 i = kt::thread_in_block(); i < args.n_target_vertices; i += BLOCK)
        // Written before the barrier.
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

// The vertices of one level, where its queue had no room.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_4k_list_level(kt::int64 n_vertices, kt::int32 level, const kt::int32* __restrict__ distance, kt::int64 capacity,
                      vertex_t* queue, kt::int64* counters) {
  const kt::Appender listed = {queue, capacity, counters};
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads())
    if (kt::load_constant(distance + v) == level) listed.append(static_cast<vertex_t>(v));
}
