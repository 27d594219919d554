// H-BF: rounds of Bellman-Ford over a frontier, in which edges of some classes cost
// less than an atomic minimum, or nothing.
//
// The class of an edge stands in the two top bits of its target (4.1). SKIP: h_bf_close
// relaxes it after the rounds; ONE_IN: no other thread writes to the target, so a store
// does. If its one predecessor improves again, that one is on a later queue, and the
// edge is seen again. With the distance in one word with the round that last lowered
// it (4.2), the atomic that lowers it also tells whether it is queued. A vertex is
// queued when it was lowered, and for nothing else: the published listing queues it
// after every first offer of a round.
//
//   threads    a virtual warp a vertex (kt/advance.cuh)
//   reads      the frontier's offsets, edges, weights    writes   what fell
//   constants  DUPLICATES, CLASSES, MODIFIERS, ENQUEUE, HEAVY, COUNTING: see h_bf.py
//
// Busato, Bombieri. An efficient implementation of the Bellman-Ford algorithm for
// Kepler GPU architectures. IEEE TPDS 2015; the sections stand beside the code.
#include <kt/advance.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/thread_queue.cuh>

using ordered_t = kt::key_of<weight_t>;

namespace {

enum Duplicates { KEPT, MARKED, IN_WORD };
enum Enqueue { APPENDED, BY_PREFIX_SUM, THROUGH_SHARED };
enum Heavy { WITH_THE_REST, BY_BLOCKS, BY_CHILDREN };
enum Counted { TRIED, LOWERED, DIRECT, SKIPPED, AVOIDED, CLOSED };
enum Outcome { REFUSED, FRESH, QUEUED_BEFORE };

using bits_t = kt::Unsigned<sizeof(vertex_t)>::type;
constexpr kt::int32 VERTEX_BITS = 8 * sizeof(vertex_t);
constexpr vertex_t SKIP = static_cast<vertex_t>(bits_t{1} << (VERTEX_BITS - 2));
constexpr vertex_t ONE_IN = static_cast<vertex_t>(bits_t{1} << (VERTEX_BITS - 1));
constexpr vertex_t CLASS = CLASSES ? SKIP | ONE_IN : 0;

constexpr kt::int32 SLOT = 192;  // vertices of a warp in shared memory (5.1)
constexpr kt::int32 NEVER_COALESCED = kt::LOCAL_QUEUE + 1;

// 5.1, item 1: what is read once goes by the caches; item 2: edges stay in the read-only one.
template <typename T>
KT_DEVICE T load_once(const T* address) {
  return MODIFIERS ? kt::load_streaming(address) : kt::load_constant(address);
}
KT_DEVICE weight_t weight_of(const weight_t* weights, offset_t e) {
  return MODIFIERS ? kt::load_constant(weights + e) : weights[e];
}

// Tentative distances. 5.1, item 3: racy loads and stores go by this multiprocessor's own cache.
struct Distances {
  ordered_t* keys;
  kt::int32* queued_in;  // MARKED: the round that last queued a vertex
  kt::int64* words;      // IN_WORD: distance above, round below, so that the order is that of the distances
  kt::int32 round;

#if DUPLICATES == 2
  static_assert(sizeof(ordered_t) == 4, "distance and round share a word of 64 bits");
  KT_DEVICE static ordered_t key_in(kt::int64 word) { return static_cast<ordered_t>(word >> 32); }
  KT_DEVICE kt::int64 with_round(ordered_t key) const {
    return static_cast<kt::int64>(static_cast<kt::uint64>(static_cast<kt::int64>(key)) << 32 |
                                  static_cast<kt::uint32>(round));
  }
  // Distances only fall: an old one lets an offer through that the atomic then refuses.
  KT_DEVICE ordered_t at(vertex_t v) const { return key_in(kt::racy_load(words + v)); }
  KT_DEVICE Outcome lower(vertex_t v, ordered_t key) const {
    const kt::int64 before = kt::atomic_min(words + v, with_round(key));
    if (key_in(before) <= key) return REFUSED;
    return static_cast<kt::int32>(before) == round ? QUEUED_BEFORE : FRESH;
  }
  KT_DEVICE void put(vertex_t v, ordered_t key) const { kt::racy_store(words + v, with_round(key)); }
#else
  KT_DEVICE ordered_t at(vertex_t v) const { return kt::racy_load(keys + v); }
  KT_DEVICE Outcome lower(vertex_t v, ordered_t key) const {
    if (kt::atomic_min(keys + v, key) <= key) return REFUSED;
    return DUPLICATES == MARKED && kt::atomic_exchange(queued_in + v, round) == round ? QUEUED_BEFORE : FRESH;
  }
  KT_DEVICE void put(vertex_t v, ordered_t key) const { kt::racy_store(keys + v, key); }
#endif
};

// Offers along edges, and the queue of those who took one.
struct EdgeRelaxation {
  const weight_t* weights;
  ordered_t farthest;
  Distances distances;
  vertex_t* parent;
  kt::int64* counted;
  kt::Appender next;
  vertex_t* slot;
  kt::LocalQueue& found;  // apart, or all of this would lie in memory with it
  weight_t from = 0;      // distance of the vertex whose row this lane walks

  KT_DEVICE void count(Counted what) const {
    if (COUNTING) kt::count(counted + what);
  }

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t e, vertex_t marked) {
    const vertex_t v = marked & ~CLASS;
    const bool discovered = valid && is_discovered(u, e, v, marked & CLASS);
    if (ENQUEUE == APPENDED) {
      if (discovered) next.append(v);
      return;
    }
    if (discovered) found.push(v);
    if (kt::any(kt::ALL_LANES, found.is_full())) empty();
  }

  // Whether the offer made v a vertex of the next frontier.
  KT_DEVICE bool is_discovered(vertex_t u, offset_t e, vertex_t v, vertex_t edge_class) const {
    if (edge_class & SKIP) {
      count(SKIPPED);
      return false;
    }
    count(TRIED);
    const ordered_t key = kt::to_ordered(kt::add_rounded(from, weight_of(weights, e)));
    if (key > farthest || key >= distances.at(v)) return false;
    Outcome outcome = FRESH;
    // In round 0 only the source has offers, one a neighbour: rows hold no parallel edges.
    if (CLASSES && ((edge_class & ONE_IN) || distances.round == 0)) {
      distances.put(v, key);
      count(DIRECT);
    } else {
      outcome = distances.lower(v, key);
      if (outcome == REFUSED) return false;
    }
    count(LOWERED);
    // May race with another lowering of v: only the search for cycles reads it, and checks what it finds.
    if (parent) kt::racy_store(parent + v, u);
    if (outcome == QUEUED_BEFORE) count(AVOIDED);
    return outcome == FRESH;
  }

  // All lanes come. A queue without room keeps counting; see h_bf.py for what the host does then.
  KT_DEVICE void empty() {
    const kt::Appender queue = next;
    const auto reserve = [queue](kt::int64 n) { return kt::atomic_add(queue.counter, n); };
    const auto write_vertex = [queue](kt::int64 place, vertex_t v) {
      if (place < queue.capacity) queue.vertices[place] = v;
    };
    if (ENQUEUE == BY_PREFIX_SUM) found.empty_into(NEVER_COALESCED, reserve, write_vertex);
    if (ENQUEUE == THROUGH_SHARED) found.empty_through(slot, SLOT, reserve, write_vertex);
  }

  template <typename Team>
  KT_DEVICE void take_row(const vertex_t* targets, Team team, kt::AdjacencyList row) {
    from = kt::from_ordered<weight_t>(distances.at(row.u));
    kt::edges_of_list(targets, team, row, *this);
  }
};

}  // namespace

// What a kernel makes of the arguments that all of them have: `relaxation`.
#define H_BF_RELAXATION                                                                              \
  KT_SHARED(vertex_t, slots, [ENQUEUE == THROUGH_SHARED ? SLOT * BLOCK / kt::WARP : 1]);             \
  kt::LocalQueue found;                                                                              \
  EdgeRelaxation relaxation = {weights,                                                              \
                               kt::to_ordered(limit),                                                \
                               {keys, queued_in, words, round},                                      \
                               parent,                                                               \
                               counted,                                                              \
                               {next, capacity, counters},                                           \
                               slots + (ENQUEUE == THROUGH_SHARED ? SLOT * kt::warp_in_block() : 0), \
                               found}

// The row of one vertex by a grid of its own (5.3).
extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_relax_row(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                   const weight_t* __restrict__ weights, vertex_t u, weight_t limit, kt::int32 round,
                   kt::int64 capacity, ordered_t* keys, kt::int32* queued_in, kt::int64* words, vertex_t* parent,
                   vertex_t* next, kt::int64* counters, kt::int64* counted) {
  H_BF_RELAXATION;
  relaxation.take_row(targets, kt::whole_grid(), kt::adjacency_list(offsets, u));
  relaxation.empty();
}

// One round. Into counters[0]: the size of the next frontier; into counters[1]: how many vertices of more than
// heavy_degree edges there were, of which the first heavy_capacity are left to others. `previous`, if there is one,
// holds the size of the frontier, which the host does not know then. A frontier that had no room for its duplicates is
// all vertices reached: whoever was queued is one of them.
extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_relax(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
               const weight_t* __restrict__ weights, const vertex_t* __restrict__ frontier, kt::int64 n_frontier,
               const kt::int64* __restrict__ previous, kt::int64 n_vertices, kt::int32 min_width, kt::int32 max_width,
               kt::int64 resident, offset_t heavy_degree, kt::int64 heavy_capacity, weight_t limit, kt::int32 round,
               kt::int64 capacity, ordered_t* keys, kt::int32* queued_in, kt::int64* words, vertex_t* parent,
               vertex_t* heavy, vertex_t* next, kt::int64* counters, kt::int64* counted) {
  H_BF_RELAXATION;
  if (previous) n_frontier = kt::load_constant(previous);
  const bool is_everything = DUPLICATES == KEPT && n_frontier > capacity;
  if (is_everything) n_frontier = n_vertices;
  kt::int32 width = min_width;  // 5.2
  while (width < max_width && 2 * width * n_frontier <= resident) width *= 2;
  // One lane hands a vertex over, and tells those that share it.
  const auto is_handed_over = [&](vertex_t u, offset_t degree, bool is_first) -> bool {
    const kt::int32 leader = kt::lane() / width * width;
    const kt::uint32 sharers = (width == kt::WARP ? kt::ALL_LANES : (1u << width) - 1u) << leader;
    kt::int32 has_space = 0;
    if (is_first) {
      const kt::int64 place = kt::atomic_add(counters + 1, 1);
      has_space = place < heavy_capacity;
#if HEAVY == 2
      static_cast<void>(heavy);
      if (has_space) {
        const kt::int64 edges_per_block = 16 * BLOCK;  // BFS-4K's K3, since this paper names none
        const kt::int64 blocks = (degree + edges_per_block - 1) / edges_per_block;
        kt::launch_child(h_bf_relax_row, static_cast<kt::int32>(blocks), offsets, targets, weights, u, limit, round,
                         capacity, keys, queued_in, words, parent, next, counters, counted);
      }
#else
      static_cast<void>(degree);
      if (has_space) heavy[place] = u;
#endif
    }
    return kt::broadcast(sharers, has_space, leader) != 0;
  };
  const auto rows = [&](kt::int64 i, bool is_first) -> kt::AdjacencyList {
    const vertex_t u = is_everything ? static_cast<vertex_t>(i) : load_once(frontier + i);
    const ordered_t key = relaxation.distances.at(u);
    if (is_everything && key == kt::Key<weight_t>::INFINITE) return kt::AdjacencyList{};
    relaxation.from = kt::from_ordered<weight_t>(key);
    const kt::AdjacencyList row = {u, load_once(offsets + u), load_once(offsets + u + 1)};
    const offset_t degree = row.end - row.begin;
    const bool is_heavy = HEAVY != WITH_THE_REST && degree > heavy_degree;
    return is_heavy && is_handed_over(u, degree, is_first) ? kt::AdjacencyList{} : row;
  };
  kt::edges_by_virtual_warp(targets, kt::whole_grid(), n_frontier, width, rows, relaxation);
  relaxation.empty();
}

// The vertices that h_bf_relax left on the queue of heavy ones, a block each.
extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_relax_heavy(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                     const weight_t* __restrict__ weights, const vertex_t* __restrict__ heavy, kt::int64 heavy_capacity,
                     weight_t limit, kt::int32 round, kt::int64 capacity, ordered_t* keys, kt::int32* queued_in,
                     kt::int64* words, vertex_t* parent, vertex_t* next, kt::int64* counters, kt::int64* counted) {
  H_BF_RELAXATION;
  const kt::int64 handed_over = kt::load_constant(counters + 1);
  const kt::int64 n_heavy = handed_over < heavy_capacity ? handed_over : heavy_capacity;
  for (kt::int64 i = kt::block_id(); i < n_heavy; i += kt::n_blocks())
    relaxation.take_row(targets, kt::one_block(), kt::adjacency_list(offsets, kt::load_constant(heavy + i)));
  relaxation.empty();
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_count_targets(const vertex_t* __restrict__ targets, kt::int64 n_edges, kt::int32* in_degrees) {
  for (kt::int64 e = kt::thread_id(); e < n_edges; e += kt::n_threads())
    kt::atomic_add(in_degrees + kt::load_constant(targets + e), 1);
}

// The marking phase (4.1). A vertex without other neighbours is skipped only if nothing can come back from it: over
// a negative edge that goes both ways there is a negative cycle, which the rounds must meet. Into counters: how many
// edges are skipped, and how many of the others lead to vertices of in-degree 1.
extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_mark_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                   const weight_t* __restrict__ weights, kt::int64 n_vertices, kt::int32 directed,
                   const kt::int32* __restrict__ in_degrees, vertex_t* marked, kt::int64* counters) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t v) {
    const offset_t out_degree = kt::load_constant(offsets + v + 1) - kt::load_constant(offsets + v);
    const bool is_negative = kt::to_ordered(kt::load_constant(weights + e)) < 0;
    const bool is_end = directed ? out_degree == 0 : out_degree == 1 && !is_negative;
    const bool is_skipped = is_end || (u == v && !is_negative);
    const bool is_only = kt::load_constant(in_degrees + v) == 1;
    if (is_skipped) kt::count(counters);
    if (is_only && !is_skipped) kt::count(counters + 1);
    marked[e] = v | (is_skipped ? SKIP : 0) | (is_only ? ONE_IN : 0);
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_take_apart(const kt::int64* __restrict__ words, kt::int64 n_vertices, ordered_t* keys) {
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads())
    keys[v] = static_cast<ordered_t>(kt::load_constant(words + v) >> 32);
}

// The closing kernel (4.1): the edges that the rounds skipped. No distance changes here that an offer is made from,
// unless two vertices have only each other: then what comes back is no less, and an old distance of the other is
// infinite. So loads and stores may race.
extern "C" __global__ void __launch_bounds__(BLOCK)
    h_bf_close_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                    const weight_t* __restrict__ weights, kt::int64 n_vertices, weight_t limit, ordered_t* keys,
                    kt::int64* counted) {
  const ordered_t farthest = kt::to_ordered(limit);
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t marked) {
    if (!(marked & CLASS & SKIP)) return;
    const ordered_t src_distance = kt::racy_load(keys + u);
    if (src_distance == kt::Key<weight_t>::INFINITE) return;
    const vertex_t v = marked & ~CLASS;
    const ordered_t key =
        kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(src_distance), kt::load_constant(weights + e)));
    if (key > farthest || key >= kt::racy_load(keys + v)) return;
    if (marked & ONE_IN)
      kt::racy_store(keys + v, key);
    else
      kt::atomic_min(keys + v, key);
    if (COUNTING) kt::count(counted + CLOSED);
  });
}
