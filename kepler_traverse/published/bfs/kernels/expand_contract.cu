// Expansion gathers the edges of a frontier; contraction keeps the targets that are discovered.
//
//   expand            queue of vertices -> queue of edges
//   contract          queue of edges -> queue of vertices
//   expand_contract   queue of vertices -> queue of vertices; edges stay in the block
//   contract_expand   queue of edges -> queue of edges; vertices stay in the block
//
// An edge in a queue is its target and, if predecessors are asked for, its source. Vertices are
// visited with plain stores, so some are queued more than once. One bit per vertex, a table per warp
// and a table per block (CULLING) find most of these duplicates. A queue counts past its capacity;
// the host then lists the level from the distances.
//
//   threads    see advances.cuh
//   shared     one slot per thread; PLACES entries per warp and HISTORY per block, if used
//   reads      adjacency lists of the frontier    writes   visited vertices and the next queue
//   constants  CULLING, COUNTING: see expand_contract.py
//
// Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012.
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>

#include "advances.cuh"
#include "block_scan.cuh"
#include "empty_thread_queues.cuh"

// What the host passes (published/bfs/expand_contract.py). From block_from edges on, a block visits an
// adjacency list; from warp_from edges on, a warp does.
struct GatherArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* frontier;  // vertices, or targets of edges
  KT_NULLABLE const vertex_t* sources;
  int64 n_frontier;
  int32 level;  // of the vertices that are discovered
  offset_t block_from;
  offset_t warp_from;
  KT_NULLABLE vertex_t* queue;  // of vertices between two kernels
  int64 queue_capacity;
  int64 capacity;  // of next
  uint8* visited;
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  KT_NULLABLE vertex_t* next_sources;
  int64* counters;
  int64* counted;
};

namespace {

enum Culling { BITS = 1, WARP_TABLE = 2, HISTORY_TABLE = 4 };
enum Counted { INSPECTED, BY_BITS, BY_HISTORY, BY_WARP, QUEUED };
constexpr int32 HISTORY = 1024;  // entries of the table of a block
constexpr int32 PLACES = 128;    // entries of the table of a warp

// Decides which edges reach a vertex that is new. All lanes of a warp call it.
struct Contraction {
  kt::Reach reach;
  uint8* visited;     // one bit per vertex, set by plain stores: a lost bit costs a load of the distance
  vertex_t* places;   // [PLACES], of the warp
  vertex_t* history;  // [HISTORY], of the block: NO_PREDECESSOR at first
  int64* counted;

  KT_DEVICE bool operator()(bool valid, vertex_t u, vertex_t v) const {
    count_if(INSPECTED, valid);
    bool discovered = valid;
    if (CULLING & BITS) discovered = discovered && !has_bit(u, v);
    count_if(BY_BITS, valid && !discovered);
    discovered = discovered && reach.visit(u, v);
    if (CULLING & HISTORY_TABLE) discovered = discovered && is_new_to_block(v);
    if ((CULLING & WARP_TABLE) && kt::any(ALL_LANES, discovered)) discovered = is_first_of_warp(discovered, v);
    count_if(QUEUED, discovered);
    return discovered;
  }

 private:
  // The paper sets the bit of v here. With predecessors this would hide v from other edges of this level, one of which
  // may have a smaller source. The bit of u is set instead, one level later.
  KT_DEVICE bool has_bit(vertex_t u, vertex_t v) const {
    if (reach.predecessor) {
      set_bit(u);
      return kt::racy_load(visited + v / 8) >> v % 8 & 1;
    }
    return !set_bit(v);
  }
  // Returns whether the bit was not set.
  KT_DEVICE bool set_bit(vertex_t v) const {
    const uint8 before = kt::racy_load(visited + v / 8);
    const uint8 bit = static_cast<uint8>(1 << v % 8);
    if (before & bit) return false;
    kt::racy_store(visited + v / 8, static_cast<uint8>(before | bit));
    return true;
  }
  // The thread that stored v in the table keeps it. An entry may be overwritten, but no vertex is lost. The paper uses
  // plain stores, here and below; an exchange is no race.
  KT_DEVICE bool is_new_to_block(vertex_t v) const {
    vertex_t* const place = history + v % HISTORY;
    const bool is_new = kt::atomic_exchange(place, v) != v;
    count_if(BY_HISTORY, !is_new);
    return is_new;
  }
  // The lanes whose vertex is the one that stayed in the table compete for its entry; one of them wins.
  KT_DEVICE bool is_first_of_warp(bool discovered, vertex_t v) const {
    vertex_t* const place = places + v % PLACES;
    if (discovered) kt::atomic_exchange(place, v);
    kt::warp_barrier(ALL_LANES);
    const bool competes = discovered && *place == v;
    kt::warp_barrier(ALL_LANES);
    if (competes) kt::atomic_exchange(place, static_cast<vertex_t>(kt::lane()));
    kt::warp_barrier(ALL_LANES);
    const bool is_first = !competes || *place == kt::lane();
    kt::warp_barrier(ALL_LANES);  // before the next vertices are stored
    count_if(BY_WARP, !is_first);
    return discovered && is_first;
  }
  KT_DEVICE void count_if(Counted what, bool happened) const {
    if (COUNTING && happened) kt::count(counted + what);
  }
};

struct EdgeQueue {
  vertex_t* targets;
  vertex_t* sources;  // null without predecessors
  int64 capacity;
  int64* counter;
};

// How the adjacency lists that the threads of a block hold are visited.
struct Gathering {
  const vertex_t* targets;
  offset_t block_from, warp_from;
  offset_t* handed_over;  // [4], shared memory
};

// Gathers edges into a queue. A prefix sum over the degrees gives each edge its slot, for one atomic per block. `shift`
// and `owner`: shared memory, one word per thread.
struct GatherIntoQueue {
  Gathering gathering;
  EdgeQueue queue;
  offset_t* shift;
  vertex_t* owner;
  int64* starts;  // [BLOCK / WARP + 1]

  KT_DEVICE void operator()(kt::AdjacencyList mine) const {
    const int64 degree = mine.end - mine.begin;
    const kt::Sums<int64> sums = kt::sum_through_block(degree, starts);
    if (sums.total == 0) return;
    if (kt::thread_in_block() == 0) starts[BLOCK / WARP] = kt::atomic_add(queue.counter, sums.total);
    owner[kt::thread_in_block()] = mine.u;
    kt::block_barrier();
    shift[kt::thread_in_block()] = starts[BLOCK / WARP] + sums.through - degree - mine.begin;
    kt::block_barrier();
    // The visitor gets the number of the thread in place of the vertex: it finds slot and source by this number.
    mine.u = static_cast<vertex_t>(kt::thread_in_block());
    kt::edges_of_block(gathering.targets, mine, gathering.block_from, gathering.warp_from, gathering.handed_over,
                       [this](bool valid, vertex_t holder, offset_t e, vertex_t v) {
                         if (!valid) return;
                         const int64 place = shift[holder] + e;
                         if (place >= queue.capacity) return;
                         queue.targets[place] = v;
                         if (queue.sources) queue.sources[place] = owner[holder];
                       });
    kt::block_barrier();
  }
};

// Shared memory of a block, and the functors that use it. Shared variables must be declared in a kernel.
#define GATHERING(args)                  \
  KT_SHARED(offset_t, handed_over, [4]); \
  const Gathering gathering = {args.targets, args.block_from, args.warp_from, handed_over}
#define GATHER_INTO(args, queue)                \
  GATHERING(args);                              \
  KT_SHARED(offset_t, shift, [BLOCK]);          \
  KT_SHARED(vertex_t, owner, [BLOCK]);          \
  KT_SHARED(int64, starts, [BLOCK / WARP + 1]); \
  const GatherIntoQueue gather = {gathering, queue, shift, owner, starts}
#define CONTRACTION(args)                                                                           \
  KT_SHARED(vertex_t, places, [CULLING & WARP_TABLE ? BLOCK / WARP * PLACES : 1]);                  \
  KT_SHARED(vertex_t, history, [CULLING & HISTORY_TABLE ? HISTORY : 1]);                            \
  if (CULLING & HISTORY_TABLE)                                                                      \
    for (int32 i = kt::thread_in_block(); i < HISTORY; i += BLOCK) history[i] = kt::NO_PREDECESSOR; \
  kt::block_barrier();                                                                              \
  vertex_t* const warp_places = places + (CULLING & WARP_TABLE ? kt::warp_in_block() * PLACES : 0); \
  const Contraction contract = {                                                                    \
      {args.level, args.distance, args.predecessor}, args.visited, warp_places, history, args.counted}

}  // namespace

// Expands the vertices counted in counters[2], or none if they exceeded the capacity of their queue.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_gather_expand(const GatherArgs args) {
  GATHER_INTO(args, (EdgeQueue{args.next, args.next_sources, args.capacity, args.counters}));
  const int64 size = args.counters[2] <= args.queue_capacity ? args.counters[2] : 0;
  for (int64 first = int64{kt::block_id()} * BLOCK; first < size; first += int64{kt::n_blocks()} * BLOCK) {
    const int64 i = first + kt::thread_in_block();
    gather(i < size ? kt::adjacency_list(args.offsets, kt::load_constant(args.queue + i)) : kt::AdjacencyList{});
  }
}

// counters[2] becomes the number of vertices in the queue.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_gather_contract(const GatherArgs args) {
  KT_SHARED(int64, block_sizes, [2]);
  if (kt::thread_in_block() == 0) *block_sizes = 0;
  CONTRACTION(args);
  const kt::Appender queue = {args.queue, args.queue_capacity, args.counters + 2};
  kt::LocalQueue found;
  for (int64 first = kt::warp_id() * WARP; first < args.n_frontier; first += kt::n_warps() * WARP) {
    const int64 i = first + kt::lane();
    const bool valid = i < args.n_frontier;
    const vertex_t v = valid ? kt::load_constant(args.frontier + i) : 0;
    if (contract(valid, valid && args.sources ? kt::load_constant(args.sources + i) : 0, v)) found.push(v);
    if (kt::any(ALL_LANES, found.is_full())) found.empty_into(queue);
  }
  kt::empty_by_block(found, queue, block_sizes);
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_gather_expand_contract(const GatherArgs args) {
  KT_SHARED(int64, block_sizes, [2]);
  if (kt::thread_in_block() == 0) *block_sizes = 0;
  GATHERING(args);
  CONTRACTION(args);
  const kt::Appender queue = {args.next, args.capacity, args.counters};
  kt::LocalQueue found;
  for (int64 first = int64{kt::block_id()} * BLOCK; first < args.n_frontier; first += int64{kt::n_blocks()} * BLOCK) {
    const int64 i = first + kt::thread_in_block();
    const kt::AdjacencyList mine = i < args.n_frontier
                                       ? kt::adjacency_list(args.offsets, kt::load_constant(args.frontier + i))
                                       : kt::AdjacencyList{};
    kt::edges_of_block(gathering.targets, mine, gathering.block_from, gathering.warp_from, gathering.handed_over,
                       [&](bool valid, vertex_t u, offset_t, vertex_t v) {
                         if (contract(valid, u, v)) found.push(v);
                         if (kt::any(ALL_LANES, found.is_full())) found.empty_into(queue);
                       });
  }
  kt::empty_by_block(found, queue, block_sizes);
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_gather_contract_expand(const GatherArgs args) {
  GATHER_INTO(args, (EdgeQueue{args.next, args.next_sources, args.capacity, args.counters}));
  CONTRACTION(args);
  for (int64 first = int64{kt::block_id()} * BLOCK; first < args.n_frontier; first += int64{kt::n_blocks()} * BLOCK) {
    const int64 i = first + kt::thread_in_block();
    const bool valid = i < args.n_frontier;
    const vertex_t v = valid ? kt::load_constant(args.frontier + i) : 0;
    const bool discovered = contract(valid, valid && args.sources ? kt::load_constant(args.sources + i) : 0, v);
    gather(discovered ? kt::adjacency_list(args.offsets, v) : kt::AdjacencyList{});
  }
}
