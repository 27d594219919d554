// Searches from many sources that touch only what they reach, one source per thread block.
//
// A block keeps the vertices that its search has reached in a hash table, with their distances as ordered integers
// (float_order.cuh), in shared memory if IN_SHARED, else in global memory. Rounds relax the edges of the vertices that
// the last round has improved, until none is. The rows are stored one after the other.
//
//   short_search_block          searches; the vertices of each row ascend
//   short_search_gather_warp    copies rows to where they begin in the order of the sources; a warp copies one row
//
// Frontier    two lists of slots of the table, by the parity of the round
// Queued      one bit per slot and parity: the first thread to set it lists the slot, so no list outgrows the table
// Visited     none: an atomic minimum on a distance decides
//
// A search with targets ends at the farthest of them, or at the last of the nearest that it needs of each group. Once
// these are reached, in any order, the largest of their distances so far is a limit: none gets farther. Vertices beyond
// the last such limit are not in the row.
//
// A search whose table is full to three quarters gives up, and a row beyond the capacity for rows is not stored. The
// host repeats these searches.
//
// Reads:  the adjacency lists of the vertices reached, with weights.
// Writes: the rows.
//
// Compile-time constants:
//   BLOCK       threads per block
//   IN_SHARED   whether tables are in shared memory
//   HOPS        whether distances are hops: int32, as the ordered integers of float
#include <kt/advance.cuh>
#include <kt/float_order.cuh>

// What the host passes (search/short_search_gpu.py).
struct ShortSearchArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const weight_t* weights;  // null for hops
  const int64* sources;
  int64 n_sources;
  int64* taken;                          // the next source, 0 at first
  const ordered_t* limits;               // [n_sources]: vertices beyond it are not reached; below 0, the row is empty
  ordered_t* stops;                      // [n_sources]: the limits, or where the targets are nearer
  KT_NULLABLE const int64* lists;        // targets
  KT_NULLABLE const int64* list_of;      // [n_sources][2]: where those of a source begin and end
  KT_NULLABLE const int32* first_group;  // [n_vertices + 1]: where the groups of each vertex begin in the next array
  KT_NULLABLE const int32* groups;
  KT_NULLABLE const int32* needs;  // [n_groups]: vertices of each group that a search needs
  int32 n_groups;
  int32 log_capacity;  // of the number of slots of a table
  KT_NULLABLE uint8* tables;
  int64 table_bytes;
  int64* begins;       // [n_sources]: where the row begins, or one of the negative numbers below
  int64* sizes;        // [n_sources]
  int64 max_vertices;  // of all rows
  int64* used;         // 0 at first
  int32* vertices;     // fewer than 2^31
  ordered_t* distances;
};

namespace {

constexpr int32 EMPTY = 0x7fffffff;  // larger than all vertices
constexpr int64 TABLE_IS_FULL = -1, NO_CAPACITY = -2;

#if IN_SHARED
using slot_t = unsigned short;
#else
using slot_t = uint32;
#endif

#if HOPS
constexpr ordered_t INFINITE = 0x7fffffff;
#else
constexpr ordered_t INFINITE = kt::INFINITE;
#endif

// What the threads of a block share.
struct Counters {
  int64 task;
  int64 place;
  int32 n_found;
  int32 listed[3];  // one read, one written, one cleared
  int64 waiting;    // targets before this one are reached
  int32 n_goals;    // vertices with groups
  int32 n_complete;
  ordered_t limit;
  ordered_t farthest;
};

struct Table {
  ordered_t* distances;  // [capacity]
  int32* vertices;       // [capacity + 1], of which the last is always empty
  uint32* queued;        // [2][words]
  slot_t* found;         // [capacity]: slots in use, and from the end those of vertices with groups
  slot_t* lists;         // [2][capacity]
  int32 log_capacity;
  const int32* first_group;
  Counters* counters;

  KT_DEVICE Table(uint8* memory, const ShortSearchArgs& args, Counters* counters)
      : log_capacity(args.log_capacity), first_group(args.first_group), counters(counters) {
    distances = reinterpret_cast<ordered_t*>(memory);
    queued = reinterpret_cast<uint32*>(distances + capacity());
    vertices = reinterpret_cast<int32*>(queued + 2 * words());
    found = reinterpret_cast<slot_t*>(vertices + capacity() + 1);
    lists = found + capacity();
  }
  KT_DEVICE int32 capacity() const { return 1 << log_capacity; }
  KT_DEVICE int32 words() const { return (capacity() + 31) / 32; }
  // Each thread can insert one more vertex: all may see the last free slot at once.
  KT_DEVICE int32 most() const { return capacity() - capacity() / 4; }
  // What has no place only makes a search longer.
  KT_DEVICE int32 goal_places() const { return capacity() / 4 - BLOCK; }
  KT_DEVICE int32 n_goals() const { return counters->n_goals < goal_places() ? counters->n_goals : goal_places(); }
  KT_DEVICE int32 goal(int32 i) const { return found[capacity() - 1 - i]; }

  KT_DEVICE void clear() const {
    for (int32 slot = kt::thread_in_block(); slot <= capacity(); slot += BLOCK) {
      vertices[slot] = EMPTY;
      if (slot < capacity()) distances[slot] = INFINITE;
      if (slot < 2 * words()) queued[slot] = 0;
    }
  }

  // The slot of a vertex, or -1 if it is new and the table is full.
  KT_DEVICE int32 slot_of(int32 v) const {
    int32 slot = first_slot(v);
    for (;; slot = (slot + 1) & (capacity() - 1)) {
      // A slot is filled once: an old value is EMPTY, and the exchange then finds the new one.
      int32 there = kt::racy_load(vertices + slot);
      if (there == EMPTY) {
        if (kt::racy_load(&counters->n_found) >= most()) return -1;  // an old number only falls short by one per thread
        there = kt::compare_and_swap(vertices + slot, EMPTY, v);
        if (there == EMPTY) {
          // New: list the slot, and again from the end if the vertex has groups.
          found[kt::atomic_add(&counters->n_found, 1)] = static_cast<slot_t>(slot);
          if (first_group != nullptr && kt::load_constant(first_group + v) < kt::load_constant(first_group + v + 1)) {
            const int32 i = kt::atomic_add(&counters->n_goals, 1);
            if (i < goal_places()) found[capacity() - 1 - i] = static_cast<slot_t>(slot);
          }
          return slot;
        }
      }
      if (there == v) return slot;
    }
  }

  // The distance of a vertex so far, while no vertex is inserted.
  KT_DEVICE ordered_t distance_of(int32 v) const {
    int32 slot = first_slot(v);
    while (vertices[slot] != v && vertices[slot] != EMPTY) slot = (slot + 1) & (capacity() - 1);
    return vertices[slot] == v ? distances[slot] : INFINITE;
  }
  KT_DEVICE int32 first_slot(int32 v) const {
    return static_cast<int32>(static_cast<uint32>(v) * 2654435769u >> (32 - log_capacity));
  }

  // Removes what is beyond a limit from the row: sorted, it comes last. Adds the others to n_kept.
  KT_DEVICE void cut(int32 size, ordered_t limit, int32* n_kept) const {
    for (int32 at = kt::thread_in_block(); at < size; at += BLOCK) {
      const int32 slot = found[at];
      if (distances[slot] <= limit) {
        kt::atomic_add(n_kept, 1);
      } else {
        vertices[slot] = EMPTY;
        distances[slot] = INFINITE;
      }
    }
  }

  // Lists a slot for the round of this parity, unless it is listed.
  KT_DEVICE void list(int32 slot, int32 parity, int32* size) const {
    const uint32 bit = 1u << (slot % 32);
    if ((kt::atomic_or(queued + parity * words() + slot / 32, bit) & bit) == 0)
      lists[parity * capacity() + kt::atomic_add(size, 1)] = static_cast<slot_t>(slot);
  }
  KT_DEVICE int32 take(int32 i, int32 parity) const {
    // The i-th slot that is listed for the round of this parity; it may be listed again.
    const int32 slot = lists[parity * capacity() + i];
    kt::atomic_and(queued + parity * words() + slot / 32, ~(1u << (slot % 32)));
    return slot;
  }

  // Sorts the slots found by vertex. Bitonic: pairs of a step have no slot in common.
  KT_DEVICE void sort(int32 size) const {
    int32 n = 1;
    while (n < size) n *= 2;
    for (int32 i = size + kt::thread_in_block(); i < n; i += BLOCK) found[i] = static_cast<slot_t>(capacity());
    kt::block_barrier();
    for (int32 length = 2; length <= n; length *= 2)
      for (int32 apart = length / 2; apart > 0; apart /= 2) {
        for (int32 pair = kt::thread_in_block(); pair < n / 2; pair += BLOCK) {
          const int32 i = pair / apart * 2 * apart + pair % apart, j = i + apart;
          const slot_t one = found[i], other = found[j];
          if ((vertices[one] > vertices[other]) == ((i & length) == 0)) {
            found[i] = other;
            found[j] = one;
          }
        }
        kt::block_barrier();
      }
  }
};

// Makes the limit nearer if all targets of the i-th source are reached.
KT_DEVICE void end_at_list(const ShortSearchArgs& args, const Table& table, int64 i) {
  Counters* const counters = table.counters;
  const int64 begin = args.list_of[2 * i], end = args.list_of[2 * i + 1];
  // Return unless all are reached; `waiting` skips what is known to be.
  for (int64 first = counters->waiting; first < end; first += BLOCK) {
    const int64 mine = first + kt::thread_in_block();
    const bool is_missing = mine < end && table.distance_of(static_cast<int32>(args.lists[mine])) == INFINITE;
    if (kt::block_any(is_missing)) return;
    if (kt::thread_in_block() == 0) counters->waiting = first + BLOCK;
  }
  if (begin == end) return;

  // They are no farther than the farthest of them is now.
  ordered_t farthest = 0;
  for (int64 mine = begin + kt::thread_in_block(); mine < end; mine += BLOCK) {
    const ordered_t its = table.distance_of(static_cast<int32>(args.lists[mine]));
    farthest = farthest < its ? its : farthest;
  }
  kt::atomic_max(&counters->farthest, farthest);
  kt::block_barrier();
  if (kt::thread_in_block() == 0 && counters->farthest < counters->limit) counters->limit = counters->farthest;
}

// Makes the limit nearer if as many vertices of each group as are needed are reached.
KT_DEVICE void end_at_nearest(const ShortSearchArgs& args, const Table& table) {
  Counters* const counters = table.counters;
  // The vertex whose rank in a group is the last one that the group needs, by its distance so far, completes the
  // group.
  for (int32 at = kt::thread_in_block(); at < table.n_goals(); at += BLOCK) {
    const ordered_t mine = table.distances[table.goal(at)];
    const int32 u = table.vertices[table.goal(at)];
    for (int32 g = args.first_group[u]; g < args.first_group[u + 1]; ++g) {
      int32 rank = 0;  // among those of the group
      for (int32 other = 0; other < table.n_goals(); ++other) {
        const ordered_t its = table.distances[table.goal(other)];
        if (its > mine || (its == mine && other >= at)) continue;
        const int32 v = table.vertices[table.goal(other)];
        for (int32 h = args.first_group[v]; h < args.first_group[v + 1]; ++h) rank += args.groups[h] == args.groups[g];
      }
      if (rank == args.needs[args.groups[g]] - 1) {
        kt::atomic_add(&counters->n_complete, 1);
        kt::atomic_max(&counters->farthest, mine);
      }
    }
  }

  kt::block_barrier();
  if (kt::thread_in_block() == 0 && counters->n_complete == args.n_groups && counters->farthest < counters->limit)
    counters->limit = counters->farthest;
}

KT_DEVICE void end_early(const ShortSearchArgs& args, const Table& table, int64 i) {
  // Makes the limit nearer, if what the search is for is reached. All threads of the block call it.
  if (kt::thread_in_block() == 0) table.counters->farthest = table.counters->n_complete = 0;
  kt::block_barrier();
  if (args.lists != nullptr) end_at_list(args, table, i);
  if (args.needs != nullptr) end_at_nearest(args, table);
  kt::block_barrier();
}

// Searches from the i-th source, whose slot is listed. Returns whether the table was large enough.
KT_DEVICE bool search(const ShortSearchArgs& args, const Table& table, int64 i) {
  Counters* const counters = table.counters;
  const bool may_end = args.lists != nullptr || args.needs != nullptr;
  bool is_full = false;
  for (int32 round = 0;; ++round) {
    const int32 now = round % 2, n_now = counters->listed[round % 3];
    // Where the nearest are looked for, it takes about as long as a round.
    if (may_end && (n_now == 0 || args.needs == nullptr || round % 4 == 3)) end_early(args, table, i);
    if (n_now == 0) return true;

    // Relax the edges of the slots that are listed for this round; those whose neighbors are lowered are listed for
    // the next.
    const ordered_t limit = counters->limit;
    int32* const n_next = counters->listed + (round + 1) % 3;
    if (kt::thread_in_block() == 0) counters->listed[(round + 2) % 3] = 0;
    const auto relax = [&](bool valid, vertex_t slot, [[maybe_unused]] offset_t e, vertex_t v) {
      if (!valid || is_full) return;
      // An old distance does no harm: who has lowered it since has listed the slot for the next round.
      const ordered_t here = kt::racy_load(table.distances + slot);
#if HOPS
      const ordered_t further = here + 1;
#else
      const ordered_t further =
          kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(here), kt::load_constant(args.weights + e)));
#endif
      if (further > limit) return;
      const int32 to = table.slot_of(static_cast<int32>(v));
      if (to < 0)
        is_full = true;
      else if (further < kt::atomic_min(table.distances + to, further))
        table.list(to, 1 - now, n_next);
    };

    for (int32 first = kt::warp_in_block() * WARP; first < n_now; first += BLOCK) {
      kt::AdjacencyList mine;
      if (first + kt::lane() < n_now) {
        const int32 slot = table.take(first + kt::lane(), now);
        mine = kt::adjacency_list(args.offsets, static_cast<vertex_t>(kt::racy_load(table.vertices + slot)));
        mine.u = slot;
      }
      kt::edges_of_lanes(args.targets, mine, true, relax);
    }
    if (kt::block_any(is_full)) return false;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) short_search_block(const ShortSearchArgs args) {
  KT_SHARED(Counters, counters, [1]);
#if IN_SHARED
  KT_DYNAMIC_SHARED(uint8, memory);
#else
  uint8* const memory = args.tables + kt::block_id() * args.table_bytes;
#endif
  const Table table(memory, args, counters);
  table.clear();
  for (;;) {
    // Take a source, and insert it at distance 0.
    if (kt::thread_in_block() == 0) {
      counters->task = kt::atomic_add(args.taken, int64{1});
      counters->n_found = counters->listed[0] = counters->listed[1] = counters->listed[2] = counters->n_goals = 0;
    }
    kt::block_barrier();
    const int64 i = counters->task;
    if (i >= args.n_sources) return;

    if (kt::thread_in_block() == 0) {
      counters->limit = args.limits[i];
      counters->waiting = args.lists != nullptr ? args.list_of[2 * i] : 0;
    }
    if (kt::thread_in_block() == 0 && args.limits[i] >= 0) {
      const int32 slot = table.slot_of(static_cast<int32>(kt::load_constant(args.sources + i)));
      table.distances[slot] = 0;
      table.list(slot, 0, counters->listed);
    }
    kt::block_barrier();

    if (!search(args, table, i)) {
      table.clear();
      if (kt::thread_in_block() == 0) args.begins[i] = TABLE_IS_FULL;
      kt::block_barrier();
      continue;
    }

    // Sort the row; what is beyond a limit that became nearer is cut off.
    const int32 n_found = counters->n_found;
    const ordered_t limit = counters->limit;
    kt::block_barrier();
    if (limit < args.limits[i]) {
      if (kt::thread_in_block() == 0) counters->n_found = 0;
      kt::block_barrier();
      table.cut(n_found, limit, &counters->n_found);
      kt::block_barrier();
    }
    const int32 size = counters->n_found;
    table.sort(n_found);
    if (kt::thread_in_block() == 0) {
      args.stops[i] = limit;
      const int64 place = kt::atomic_add(args.used, static_cast<int64>(size));
      counters->place = place + size > args.max_vertices ? NO_CAPACITY : place;
      args.begins[i] = counters->place;
      args.sizes[i] = size;
    }
    kt::block_barrier();

    // Write the row, if there is room for it, and empty its slots for the next source.
    const int64 place = counters->place;
    for (int32 at = kt::thread_in_block(); at < size; at += BLOCK) {
      const int32 slot = table.found[at];
      if (place >= 0) {
        args.vertices[place + at] = table.vertices[slot];
        args.distances[place + at] = table.distances[slot];
      }
      table.vertices[slot] = EMPTY;
      table.distances[slot] = INFINITE;
    }
    kt::block_barrier();
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    short_search_gather_warp(const int64* begins, const int64* sizes, const int64* places, int64 n_rows,
                             const int32* vertices, const ordered_t* distances, int32* ordered_vertices,
                             ordered_t* ordered_distances) {
  // Row i moves from begins[i] to places[i].
  for (int64 i = kt::warp_id(); i < n_rows; i += kt::n_warps()) {
    const int64 begin = kt::load_constant(begins + i), place = kt::load_constant(places + i);
    if (begin < 0) continue;
    for (int64 at = kt::lane(); at < kt::load_constant(sizes + i); at += WARP) {
      ordered_vertices[place + at] = kt::load_constant(vertices + begin + at);
      ordered_distances[place + at] = kt::load_constant(distances + begin + at);
    }
  }
}
