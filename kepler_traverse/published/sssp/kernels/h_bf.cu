// H-BF: Bellman-Ford with a frontier, in which edges of some classes cost less than an atomic
// minimum, or nothing.
//
//   h_bf_relax             one round
//   h_bf_relax_hubs        the high-degree vertices of the round, one block per vertex (5.3)
//   h_bf_relax_list        the adjacency list of one high-degree vertex, as a child kernel (5.3)
//   h_bf_count_targets, h_bf_classify_warp, h_bf_close_warp   edge classes (4.1)
//   h_bf_unpack            distances from the words of 4.2
//
// Edge classes (4.1) are in the two top bits of a target. SKIP: h_bf_close_warp relaxes the edge
// after the rounds. ONE_IN: no other edge leads to the target, so a plain store is enough. If its only
// predecessor improves again, it is queued again, and the edge is relaxed again.
//
// Duplicates (4.2): with IN_WORD one word holds the distance and the round that last improved it, so
// the atomic that improves the distance also tells whether the vertex is queued. A vertex is queued
// only when it has improved. The published listing queues it after its first candidate of a round.
//
//   threads    one virtual warp per vertex (kt/advance.cuh)
//   shared     SLOT vertices per warp, with THROUGH_SHARED
//   reads      the adjacency lists and weights of the frontier
//   writes     improved distances and the next queue
//   constants  DUPLICATES, CLASSES, STREAM, READ_ONLY, BYPASS_L1, ENQUEUE, HEAVY, COUNTING: see h_bf.py
//
// Busato, Bombieri. An efficient implementation of the Bellman-Ford algorithm for
// Kepler GPU architectures. IEEE TPDS 2015. Numbers in parentheses are its sections.
#include <kt/advance.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/thread_queue.cuh>

// What the host passes (published/sssp/h_bf.py). `targets` hold the edge classes.
struct RelaxArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  const vertex_t* frontier;
  int64 n_frontier;
  KT_NULLABLE const int64* previous;  // holds the size of the frontier if the host does not know it
  vertex_t u;                         // of a child kernel
  int64 n_vertices;
  int32 min_width;  // lanes per vertex
  int32 max_width;
  int64 resident;  // threads that the device holds at once
  offset_t heavy_degree;
  int64 hub_capacity;
  weight_t limit;
  int32 round;
  int64 capacity;  // of next
  ordered_t* keys;
  KT_NULLABLE int32* queued_in;
  KT_NULLABLE int64* words;
  KT_NULLABLE vertex_t* parent;
  KT_NULLABLE vertex_t* hubs;  // the queue of high-degree vertices
  vertex_t* next;
  int64* counters;
  KT_NULLABLE int64* counted;
};

struct ClassifyArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  int32 directed;
  const int32* in_degrees;
  vertex_t* classified;  // the targets with their edge classes
  int64* counters;
};

namespace {

enum Duplicates { KEPT, STAMPED, IN_WORD };
enum Enqueue { APPENDED, BY_PREFIX_SUM, THROUGH_SHARED };
enum HighDegree { NOT_SEPARATE, BY_BLOCKS, BY_CHILDREN };
enum Counted { TRIED, IMPROVED, DIRECT, SKIPPED, AVOIDED, CLOSED };
enum Outcome { REJECTED, FIRST_THIS_ROUND, QUEUED_BEFORE };

using bits_t = kt::Unsigned<sizeof(vertex_t)>::type;
constexpr int32 VERTEX_BITS = 8 * sizeof(vertex_t);
constexpr vertex_t SKIP = static_cast<vertex_t>(bits_t{1} << (VERTEX_BITS - 2));
constexpr vertex_t ONE_IN = static_cast<vertex_t>(bits_t{1} << (VERTEX_BITS - 1));
constexpr vertex_t CLASS = CLASSES ? SKIP | ONE_IN : 0;

constexpr int32 SLOT = 192;  // vertices of a warp in shared memory (5.1)

// 5.1, item 1: frontier and offsets, which a round reads once, are evicted first.
template <typename T>
KT_DEVICE T load_once(const T* address) {
  return STREAM ? kt::load_streaming(address) : kt::load_constant(address);
}
// Item 2: targets and weights go through the read-only cache.
template <typename T>
KT_DEVICE T load_of_edge(const T* array, offset_t e) {
  return READ_ONLY ? kt::load_constant(array + e) : array[e];
}
// Item 3: distances bypass the L1 cache, which may hold old ones. Distances only fall: an old one of v lets a candidate
// through that the atomic then rejects. An old one of u gives a candidate that is too large, and the thread that
// lowered it has queued u again.
template <typename T>
KT_DEVICE T load_distance(const T* address) {
  return BYPASS_L1 ? kt::racy_load(address) : kt::racy_load_cached(address);
}

// Tentative distances.
struct Distances {
  ordered_t* keys;
  int32* queued_in;  // STAMPED: the round that last queued a vertex
  int64* words;      // IN_WORD: the distance in the upper half, so that the order is that of the distances; the round
  int32 round;

#if DUPLICATES == 2
  static_assert(sizeof(ordered_t) == 4, "distance and round share a word of 64 bits");
  KT_DEVICE static ordered_t key_in(int64 word) { return static_cast<ordered_t>(word >> 32); }
  KT_DEVICE int64 with_round(ordered_t key) const {
    return static_cast<int64>(static_cast<uint64>(static_cast<int64>(key)) << 32 | static_cast<uint32>(round));
  }
  KT_DEVICE ordered_t load(vertex_t v) const { return key_in(load_distance(words + v)); }
  KT_DEVICE Outcome improve(vertex_t v, ordered_t key) const {
    const int64 before = kt::atomic_min(words + v, with_round(key));
    if (key_in(before) <= key) return REJECTED;
    return static_cast<int32>(before) == round ? QUEUED_BEFORE : FIRST_THIS_ROUND;
  }
  KT_DEVICE void store(vertex_t v, ordered_t key) const { kt::racy_store(words + v, with_round(key)); }
#else
  KT_DEVICE ordered_t load(vertex_t v) const { return load_distance(keys + v); }
  KT_DEVICE Outcome improve(vertex_t v, ordered_t key) const {
    if (kt::atomic_min(keys + v, key) <= key) return REJECTED;
    return DUPLICATES == STAMPED && kt::atomic_exchange(queued_in + v, round) == round ? QUEUED_BEFORE
                                                                                       : FIRST_THIS_ROUND;
  }
  KT_DEVICE void store(vertex_t v, ordered_t key) const { kt::racy_store(keys + v, key); }
#endif
};

// Empties the queues of a warp's lanes through `slot`, shared memory of the warp for SLOT vertices, from which they are
// written with coalesced stores (5.1, figure 5). All lanes call it.
KT_DEVICE void empty_through_shared(kt::LocalQueue& queue, vertex_t* slot, kt::Appender to) {
  int32 place = kt::sum_through(queue.size);
  const int32 total = kt::broadcast(ALL_LANES, place, WARP - 1);
  place -= queue.size;
  int64 first = 0;
  if (kt::lane() == 0 && total) first = to.reserve(total);
  first = kt::broadcast(ALL_LANES, first, 0);
  int32 put = 0;
  for (int32 done = 0; done < total; done += SLOT) {
    for (; put < queue.size && place + put < done + SLOT; ++put) slot[place + put - done] = queue.vertices[put];
    kt::warp_barrier(ALL_LANES);
    for (int32 i = kt::lane(); i < SLOT && done + i < total; i += WARP) to.store(first + done + i, slot[i]);
    kt::warp_barrier(ALL_LANES);
  }
  queue.size = 0;
}

// Relaxes edges and queues the vertices that improve.
struct EdgeRelaxation {
  const vertex_t* targets;  // with the classes of the edges
  const weight_t* weights;
  ordered_t farthest;
  Distances distances;
  vertex_t* parent;
  int64* counted;
  kt::Appender next;
  vertex_t* slot;
  kt::LocalQueue& found;      // a reference, so that the compiler can keep the other members in registers
  weight_t src_distance = 0;  // distance of the vertex whose adjacency list this lane visits

  KT_DEVICE void count(Counted what) const {
    if (COUNTING) kt::count(counted + what);
  }

  // It loads the target itself, with the hint of the knob.
  KT_DEVICE void unrolled(const kt::Edges<1>& edges) {
    const bool valid = edges.valid[0];
    const vertex_t target = valid ? load_of_edge(targets, edges.e[0]) : edges.u[0];
    const vertex_t v = target & ~CLASS;
    const bool is_queued = valid && relax(edges.u[0], edges.e[0], v, target & CLASS);
    if (ENQUEUE == APPENDED) {
      if (is_queued) next.append(v);
      return;
    }
    if (is_queued) found.push(v);
    if (kt::any(ALL_LANES, found.is_full())) empty();
  }

  // Returns whether v enters the next frontier.
  KT_DEVICE bool relax(vertex_t u, offset_t e, vertex_t v, vertex_t edge_class) const {
    if (edge_class & SKIP) {
      count(SKIPPED);
      return false;
    }
    count(TRIED);
    const ordered_t key = kt::to_ordered(kt::add_rounded(src_distance, load_of_edge(weights, e)));
    if (key > farthest || key >= distances.load(v)) return false;
    Outcome outcome = FIRST_THIS_ROUND;
    // In round 0 only the source relaxes edges, one per neighbor: adjacency lists hold no parallel edges.
    if (CLASSES && ((edge_class & ONE_IN) || distances.round == 0)) {
      distances.store(v, key);
      count(DIRECT);
    } else {
      outcome = distances.improve(v, key);
      if (outcome == REJECTED) return false;
    }
    count(IMPROVED);
    // May race with another improvement of v: only the search for cycles reads it, and checks what it finds.
    if (parent) kt::racy_store(parent + v, u);
    if (outcome == QUEUED_BEFORE) count(AVOIDED);
    return outcome == FIRST_THIS_ROUND;
  }

  // All lanes call it. A queue counts past its capacity; see h_bf.py for what the host does then.
  KT_DEVICE void empty() {
    if (ENQUEUE == BY_PREFIX_SUM) found.empty_into(next);
    if (ENQUEUE == THROUGH_SHARED) empty_through_shared(found, slot, next);
  }

  template <typename Team>
  KT_DEVICE void relax_list(Team team, kt::AdjacencyList list) {
    src_distance = kt::from_ordered<weight_t>(distances.load(list.u));
    kt::edges_of_list(targets, team, list, *this);
  }
};

// `slots`: shared memory of the block; `found`: the queue of this thread.
KT_DEVICE EdgeRelaxation edge_relaxation(const RelaxArgs& args, vertex_t* slots, kt::LocalQueue& found) {
  return {args.targets,
          args.weights,
          kt::to_ordered(args.limit),
          {args.keys, args.queued_in, args.words, args.round},
          args.parent,
          args.counted,
          {args.next, args.capacity, args.counters},
          slots + (ENQUEUE == THROUGH_SHARED ? SLOT * kt::warp_in_block() : 0),
          found};
}

constexpr int32 N_SLOTS = ENQUEUE == THROUGH_SHARED ? SLOT * BLOCK / WARP : 1;

}  // namespace

// Relaxes the edges of one vertex. The number of blocks depends on its degree (5.3).
extern "C" __global__ void __launch_bounds__(BLOCK) h_bf_relax_list(const RelaxArgs args) {
  KT_SHARED(vertex_t, slots, [N_SLOTS]);
  kt::LocalQueue found;
  EdgeRelaxation relaxation = edge_relaxation(args, slots, found);
  relaxation.relax_list(kt::whole_grid(), kt::adjacency_list(args.offsets, args.u));
  relaxation.empty();
}

// One round. If the frontier overflowed with duplicates, it is replaced by all reached vertices, which include it.
//
//   counters[0]   the size of the next frontier
//   counters[1]   the number of vertices with more than heavy_degree edges. h_bf_relax_hubs or child
//                 kernels relax the first hub_capacity of them
extern "C" __global__ void __launch_bounds__(BLOCK) h_bf_relax(const RelaxArgs args) {
  KT_SHARED(vertex_t, slots, [N_SLOTS]);
  kt::LocalQueue found;
  EdgeRelaxation relaxation = edge_relaxation(args, slots, found);
  const offset_t* __restrict__ const offsets = args.offsets;
  const vertex_t* __restrict__ const frontier = args.frontier;
  int64 n_frontier = args.previous ? kt::load_constant(args.previous) : args.n_frontier;
  const bool is_everything = DUPLICATES == KEPT && n_frontier > args.capacity;
  if (is_everything) n_frontier = args.n_vertices;
  int32 width = args.min_width;  // 5.2
  while (width < args.max_width && 2 * width * n_frontier <= args.resident) width *= 2;
  // One of the lanes that share a vertex hands it over and broadcasts whether there was space.
  const auto is_handed_over = [&](vertex_t u, offset_t degree, bool is_first) -> bool {
    const int32 leader = kt::lane() / width * width;
    const uint32 sharers = (width == WARP ? ALL_LANES : (1u << width) - 1u) << leader;
    int32 has_space = 0;
    if (is_first) {
      const int64 place = kt::atomic_add(args.counters + 1, 1);
      has_space = place < args.hub_capacity;
#if HEAVY == 2
      if (has_space) {
        const int64 edges_per_block = 16 * BLOCK;  // K3 of BFS-4K; this paper gives no number
        const int64 blocks = (degree + edges_per_block - 1) / edges_per_block;
        RelaxArgs child = args;
        child.u = u;
        kt::launch_child(h_bf_relax_list, static_cast<int32>(blocks), child);
      }
#else
      static_cast<void>(degree);
      if (has_space) args.hubs[place] = u;
#endif
    }
    return kt::broadcast(sharers, has_space, leader) != 0;
  };
  const auto lists = [&](int64 i, bool is_first) -> kt::AdjacencyList {
    const vertex_t u = is_everything ? static_cast<vertex_t>(i) : load_once(frontier + i);
    const ordered_t key = relaxation.distances.load(u);
    if (is_everything && key == kt::INFINITE) return kt::AdjacencyList{};
    relaxation.src_distance = kt::from_ordered<weight_t>(key);
    const kt::AdjacencyList list = {u, load_once(offsets + u), load_once(offsets + u + 1)};
    const offset_t degree = list.end - list.begin;
    const bool is_high_degree = HEAVY != NOT_SEPARATE && degree > args.heavy_degree;
    return is_high_degree && is_handed_over(u, degree, is_first) ? kt::AdjacencyList{} : list;
  };
  kt::edges_by_virtual_warp(args.targets, kt::whole_grid(), n_frontier, width, lists, relaxation);
  relaxation.empty();
}

// The vertices that h_bf_relax put into the queue of high-degree vertices, one block per vertex.
extern "C" __global__ void __launch_bounds__(BLOCK) h_bf_relax_hubs(const RelaxArgs args) {
  KT_SHARED(vertex_t, slots, [N_SLOTS]);
  kt::LocalQueue found;
  EdgeRelaxation relaxation = edge_relaxation(args, slots, found);
  const int64 handed_over = kt::load_constant(args.counters + 1);
  const int64 n_hubs = handed_over < args.hub_capacity ? handed_over : args.hub_capacity;
  for (int64 i = kt::block_id(); i < n_hubs; i += kt::n_blocks())
    relaxation.relax_list(kt::one_block(), kt::adjacency_list(args.offsets, kt::load_constant(args.hubs + i)));
  relaxation.empty();
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_count_targets(const vertex_t* targets, int64 n_edges, int32* in_degrees) {
  for (int64 e = kt::thread_id(); e < n_edges; e += kt::n_threads())
    kt::atomic_add(in_degrees + kt::load_constant(targets + e), 1);
}

// The marking phase (4.1): determines the class of each edge. A vertex without other neighbors is skipped only if no
// path leads back from it with a smaller distance: a negative edge in both directions is a negative cycle, which the
// rounds must find.
//
//   counters[0]   the number of skipped edges
//   counters[1]   the number of other edges that lead to vertices of in-degree 1
extern "C" __global__ void __launch_bounds__(BLOCK) h_bf_classify_warp(const ClassifyArgs args) {
  const offset_t* const offsets = args.offsets;
  const weight_t* const weights = args.weights;
  const int32* const in_degrees = args.in_degrees;
  const int32 directed = args.directed;
  vertex_t* const classified = args.classified;
  int64* const counters = args.counters;
  kt::edges_by_warp({offsets, args.targets}, kt::Range{0, args.n_vertices}, [=](vertex_t u, offset_t e, vertex_t v) {
    const offset_t out_degree = kt::degree_of(offsets, v);
    const bool is_negative = kt::to_ordered(kt::load_constant(weights + e)) < 0;
    const bool is_end = directed ? out_degree == 0 : out_degree == 1 && !is_negative;
    const bool is_skipped = is_end || (u == v && !is_negative);
    const bool is_only = kt::load_constant(in_degrees + v) == 1;
    if (is_skipped) kt::count(counters);
    if (is_only && !is_skipped) kt::count(counters + 1);
    classified[e] = v | (is_skipped ? SKIP : 0) | (is_only ? ONE_IN : 0);
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK) h_bf_unpack(const int64* words, int64 n_vertices, ordered_t* keys) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads())
    keys[v] = static_cast<ordered_t>(kt::load_constant(words + v) >> 32);
}

// The closing kernel (4.1): relaxes the edges that the rounds skipped. Loads and stores may race, since no distance
// changes here from which a candidate is computed. The exception is two vertices that have only each other as
// neighbors: the candidate that comes back is not smaller, and an old distance of the other vertex is infinite.
extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_close_warp(const offset_t* offsets, const vertex_t* targets, const weight_t* weights, int64 n_vertices,
                    weight_t limit, ordered_t* keys, int64* counted) {
  const ordered_t farthest = kt::to_ordered(limit);
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t target) {
    if (!(target & CLASS & SKIP)) return;
    const ordered_t src_distance = kt::racy_load(keys + u);
    if (src_distance == kt::INFINITE) return;
    const vertex_t v = target & ~CLASS;
    const ordered_t key =
        kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(src_distance), kt::load_constant(weights + e)));
    if (key > farthest || key >= kt::racy_load(keys + v)) return;
    if (target & ONE_IN)
      kt::racy_store(keys + v, key);
    else
      kt::atomic_min(keys + v, key);
    if (COUNTING) kt::count(counted + CLOSED);
  });
}
