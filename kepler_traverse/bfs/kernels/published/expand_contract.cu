// Expansion gathers the edges of a frontier, contraction leaves the vertices that are new.
//
//   expand            queue of vertices -> queue of edges
//   contract          queue of edges -> queue of vertices
//   expand_contract   queue of vertices -> queue of vertices, edges stay in the block
//   contract_expand   queue of edges -> queue of edges, vertices stay in the block
//
// An edge in a queue is the vertex that it leads to and, where predecessors are wanted, the
// one that it leaves. Vertices are marked by plain stores, so some are queued more than once;
// bits, a table a warp and one a block (CULLING) find most of those. A queue that has no room
// keeps counting, and the host lists the level out of the distances.
//
//   shared   a slot a thread; 128 places a warp and HISTORY a block, where they are used
//
// Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012.
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/thread_queue.cuh>

#include "advance_by_degree.cuh"

namespace {

using kt::int32;
using kt::int64;
using kt::uint8;

enum Culling { BITS = 1, WARP_TABLE = 2, HISTORY_TABLE = 4 };
enum Counted { INSPECTED, BY_BITS, BY_HISTORY, BY_WARP, QUEUED };
constexpr int32 HISTORY = 1024;
constexpr int32 PLACES = 128;  // of a warp

// Decides which edges reach a vertex that no thread has; all lanes of a warp come.
struct Contraction {
  kt::Reach reach;
  uint8* visited;     // a bit per vertex, set by plain stores: a lost one costs a look at the distance
  vertex_t* places;   // [PLACES], of the warp
  vertex_t* history;  // [HISTORY], of the block: NO_PREDECESSOR at first
  int64* counted;

  KT_DEVICE bool operator()(bool valid, vertex_t u, vertex_t v) const {
    note(INSPECTED, valid);
    bool discovered = valid;
    if (CULLING & BITS) discovered = discovered && !has_bit(u, v);
    note(BY_BITS, valid && !discovered);
    discovered = discovered && reach.mark(u, v);
    if (CULLING & HISTORY_TABLE) discovered = discovered && is_new_to_block(v);
    if ((CULLING & WARP_TABLE) && kt::any(kt::ALL_LANES, discovered)) discovered = is_first_of_warp(discovered, v);
    note(QUEUED, discovered);
    return discovered;
  }

 private:
  // The paper sets v's bit here. Where predecessors are wanted that would hide v from other
  // edges of this level, one of which may leave a smaller vertex: so u's is, a level later.
  KT_DEVICE bool has_bit(vertex_t u, vertex_t v) const {
    if (reach.predecessor) {
      set_bit(u);
      return kt::racy_load(visited + v / 8) >> v % 8 & 1;
    }
    return !set_bit(v);
  }
  // Whether it was not set.
  KT_DEVICE bool set_bit(vertex_t v) const {
    const uint8 before = kt::racy_load(visited + v / 8);
    const uint8 bit = static_cast<uint8>(1 << v % 8);
    if (before & bit) return false;
    kt::racy_store(visited + v / 8, static_cast<uint8>(before | bit));
    return true;
  }
  // Any thread that stored v here has kept it. Entries get lost, and no vertex. The paper stores plainly,
  // here and below; an exchange is no race.
  KT_DEVICE bool is_new_to_block(vertex_t v) const {
    vertex_t* const place = history + v % HISTORY;
    const bool is_new = kt::atomic_exchange(place, v) != v;
    note(BY_HISTORY, !is_new);
    return is_new;
  }
  // Lanes that hold the vertex that stayed in a place compete for it; one of them remains.
  KT_DEVICE bool is_first_of_warp(bool discovered, vertex_t v) const {
    vertex_t* const place = places + v % PLACES;
    if (discovered) kt::atomic_exchange(place, v);
    kt::warp_barrier(kt::ALL_LANES);
    const bool vies = discovered && *place == v;
    kt::warp_barrier(kt::ALL_LANES);
    if (vies) kt::atomic_exchange(place, static_cast<vertex_t>(kt::lane()));
    kt::warp_barrier(kt::ALL_LANES);
    const bool is_first = !vies || *place == kt::lane();
    kt::warp_barrier(kt::ALL_LANES);  // before the next vertices are stored
    note(BY_WARP, !is_first);
    return discovered && is_first;
  }
  KT_DEVICE void note(Counted what, bool happened) const {
    if (COUNTING && happened) kt::count(counted + what);
  }
};

struct EdgeQueue {
  vertex_t* targets;
  vertex_t* sources;  // null: not wanted
  int64 capacity;
  int64* counter;
};

// How the rows that the threads of a block hold are gathered.
struct Gathering {
  const vertex_t* targets;
  offset_t block_from, warp_from;
  offset_t* handed;  // [4], shared memory
};

// The same into a queue of edges, where a prefix sum over the rows' lengths gives each edge its
// place, for one atomic a block. `shift` and `owner`: a word each a thread, of shared memory,
// and two more in `starts`.
struct GatherInto {
  Gathering by;
  EdgeQueue into;
  offset_t* shift;
  vertex_t* owner;
  int64* starts;  // [BLOCK / WARP + 1]

  KT_DEVICE void operator()(kt::AdjacencyList mine) const {
    const int64 degree = mine.end - mine.begin;
    const kt::Sums<int64> places = kt::sum_through_block(degree, starts);
    if (places.total == 0) return;
    if (kt::thread_in_block() == 0) starts[BLOCK / kt::WARP] = kt::atomic_add(into.counter, places.total);
    owner[kt::thread_in_block()] = mine.u;
    kt::block_barrier();
    shift[kt::thread_in_block()] = starts[BLOCK / kt::WARP] + places.through - degree - mine.begin;
    kt::block_barrier();
    // Who holds a row tells the place of its edges, and the vertex that they leave.
    mine.u = static_cast<vertex_t>(kt::thread_in_block());
    kt::edges_of_block(by.targets, mine, by.block_from, by.warp_from, by.handed,
                       [this](bool valid, vertex_t holder, offset_t e, vertex_t v) {
                         if (!valid) return;
                         const int64 place = shift[holder] + e;
                         if (place >= into.capacity) return;
                         into.targets[place] = v;
                         if (into.sources) into.sources[place] = owner[holder];
                       });
    kt::block_barrier();
  }
};

// Memory of a block, for whichever of its parts a kernel uses.
#define GATHERING(targets)          \
  KT_SHARED(offset_t, handed, [4]); \
  const Gathering by = {targets, block_from, warp_from, handed}
#define GATHER_INTO(targets, queue)                 \
  GATHERING(targets);                               \
  KT_SHARED(offset_t, shift, [BLOCK]);              \
  KT_SHARED(vertex_t, owner, [BLOCK]);              \
  KT_SHARED(int64, starts, [BLOCK / kt::WARP + 1]); \
  const GatherInto gather = {by, queue, shift, owner, starts}
#define CONTRACTION()                                                                               \
  KT_SHARED(vertex_t, places, [CULLING & WARP_TABLE ? BLOCK / kt::WARP * PLACES : 1]);              \
  KT_SHARED(vertex_t, history, [CULLING & HISTORY_TABLE ? HISTORY : 1]);                            \
  if (CULLING & HISTORY_TABLE)                                                                      \
    for (int32 i = kt::thread_in_block(); i < HISTORY; i += BLOCK) history[i] = kt::NO_PREDECESSOR; \
  kt::block_barrier();                                                                              \
  vertex_t* const of_warp = places + (CULLING & WARP_TABLE ? kt::warp_in_block() * PLACES : 0);     \
  const Contraction contract = {{level, distance, predecessor}, visited, of_warp, history, counted}

}  // namespace

// Of the vertices counted in counters[2]; none where their queue has no room for them.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_gather_expand(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                      const vertex_t* __restrict__ queue, int64 queue_capacity, offset_t block_from, offset_t warp_from,
                      int64 capacity, vertex_t* edges, vertex_t* sources, int64* counters) {
  GATHER_INTO(targets, (EdgeQueue{edges, sources, capacity, counters}));
  const int64 size = counters[2] <= queue_capacity ? counters[2] : 0;
  for (int64 first = int64{kt::block_id()} * BLOCK; first < size; first += int64{kt::n_blocks()} * BLOCK) {
    const int64 i = first + kt::thread_in_block();
    gather(i < size ? kt::adjacency_list(offsets, kt::load_constant(queue + i)) : kt::AdjacencyList{});
  }
}

// Into counters[2]: how many vertices are queued.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_gather_contract(const vertex_t* __restrict__ edges, const vertex_t* __restrict__ sources, int64 n_edges,
                        int32 level, int64 queue_capacity, uint8* visited, int32* distance, vertex_t* predecessor,
                        vertex_t* queue, int64* counters, int64* counted) {
  KT_SHARED(int64, taken, [2]);
  if (kt::thread_in_block() == 0) *taken = 0;
  CONTRACTION();
  const auto reserve = [=](int64 n) { return kt::atomic_add(counters + 2, n); };
  const auto write = [=](int64 place, vertex_t v) {
    if (place < queue_capacity) queue[place] = v;
  };
  kt::LocalQueue found;
  for (int64 first = kt::warp_id() * kt::WARP; first < n_edges; first += kt::n_warps() * kt::WARP) {
    const int64 i = first + kt::lane();
    const bool valid = i < n_edges;
    const vertex_t v = valid ? kt::load_constant(edges + i) : 0;
    if (contract(valid, valid && sources ? kt::load_constant(sources + i) : 0, v)) found.push(v);
    if (kt::any(kt::ALL_LANES, found.is_full())) found.empty_into(kt::LOCAL_QUEUE + 1, reserve, write);
  }
  found.empty_together(kt::LOCAL_QUEUE + 1, taken, reserve, write);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_gather_expand_contract(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                               const vertex_t* __restrict__ frontier, int64 n_frontier, int32 level,
                               offset_t block_from, offset_t warp_from, int64 capacity, uint8* visited, int32* distance,
                               vertex_t* predecessor, vertex_t* next, int64* counters, int64* counted) {
  KT_SHARED(int64, taken, [2]);
  if (kt::thread_in_block() == 0) *taken = 0;
  GATHERING(targets);
  CONTRACTION();
  const auto reserve = [=](int64 n) { return kt::atomic_add(counters, n); };
  const auto write = [=](int64 place, vertex_t v) {
    if (place < capacity) next[place] = v;
  };
  kt::LocalQueue found;
  for (int64 first = int64{kt::block_id()} * BLOCK; first < n_frontier; first += int64{kt::n_blocks()} * BLOCK) {
    const int64 i = first + kt::thread_in_block();
    const kt::AdjacencyList mine =
        i < n_frontier ? kt::adjacency_list(offsets, kt::load_constant(frontier + i)) : kt::AdjacencyList{};
    kt::edges_of_block(by.targets, mine, by.block_from, by.warp_from, by.handed,
                       [&](bool valid, vertex_t u, offset_t, vertex_t v) {
                         if (contract(valid, u, v)) found.push(v);
                         if (kt::any(kt::ALL_LANES, found.is_full()))
                           found.empty_into(kt::LOCAL_QUEUE + 1, reserve, write);
                       });
  }
  found.empty_together(kt::LOCAL_QUEUE + 1, taken, reserve, write);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_gather_contract_expand(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                               const vertex_t* __restrict__ edges, const vertex_t* __restrict__ sources, int64 n_edges,
                               int32 level, offset_t block_from, offset_t warp_from, int64 capacity, uint8* visited,
                               int32* distance, vertex_t* predecessor, vertex_t* next, vertex_t* next_sources,
                               int64* counters, int64* counted) {
  GATHER_INTO(targets, (EdgeQueue{next, next_sources, capacity, counters}));
  CONTRACTION();
  for (int64 first = int64{kt::block_id()} * BLOCK; first < n_edges; first += int64{kt::n_blocks()} * BLOCK) {
    const int64 i = first + kt::thread_in_block();
    const bool valid = i < n_edges;
    const vertex_t v = valid ? kt::load_constant(edges + i) : 0;
    const bool discovered = contract(valid, valid && sources ? kt::load_constant(sources + i) : 0, v);
    gather(discovered ? kt::adjacency_list(offsets, v) : kt::AdjacencyList{});
  }
}

// The vertices of one level, where their queue had no room, each of them once.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_gather_list_level(int64 n_vertices, int32 level, const int32* __restrict__ distance, int64 capacity,
                          vertex_t* queue, int64* counter) {
  kt::list_level(distance, n_vertices, level, {queue, capacity, counter});
}
