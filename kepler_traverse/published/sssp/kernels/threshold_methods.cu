// SSSP with piles of vertices, which an ascending list of thresholds divides by distance.
//
//   near-far          one threshold
//   bucketing         several thresholds
//   delta-stepping    several thresholds; light and heavy edges are relaxed separately
//   Dijkstra-like     one threshold, computed from the vertices that wait
//
//   sssp_piles_lightest_warp   the lightest edge of each vertex
//   sssp_piles_nearest         the smallest distance in the last pile
//   sssp_piles_split           divides the last pile by a new list of thresholds
//   sssp_piles_relax           relaxes one pile for one round
//
// Pile k < n_thresholds holds vertices that fell below thresholds[k] but not below the threshold
// before; the last pile holds all others. The thread that improves a vertex from the distances of one
// pile to those of another puts it there, so each pile holds it at most once. Its entries in the piles
// that it has left are stale: its distance is below `floor`.
//
// The current pile is relaxed in rounds until no vertex falls into it. As no weight is negative, no
// vertex below its threshold falls again. After the last pile of the list, a new list divides what
// waits beyond it.
//
//   threads   one per vertex in nearest and split; else see kt/advance.cuh
//   reads     the vertices of a pile, their adjacency lists and weights
//   writes    improved distances, piles and their sizes
//
// Davidson, Baxter, Garland, Owens. IPDPS 2014 (Near-Far Pile, Bucketing). Meyer, Sanders.
// Delta-stepping. J. Algorithms 49, 2003. Martin, Torres, Gavilanes. ICCS 2009; Ortega-Arranz
// et al. 2013 (thresholds computed from the vertices).
#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/relax.cuh>

// What the host passes (published/sssp/threshold_methods.py).
struct PileArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  const vertex_t* vertices;  // a pile, or the vertices that fell into it in the last round
  int64 size;
  weight_t limit;
  ordered_t floor;
  ordered_t above;  // relax edges with weights above this one,
  ordered_t up_to;  // and up to this one
  const ordered_t* thresholds;
  int32 n_thresholds;
  int32 side;
  int32 current;  // pile
  int32 keeps;    // whether vertices that fall into the current pile are appended to it
  int32 round;
  int64 pile_capacity;
  ordered_t* keys;
  int32* queued_in;  // the round that last queued a vertex
  vertex_t* next;
  vertex_t* piles;
  int64* sizes;
  int64* counters;
};

namespace {

struct Piles {
  const ordered_t* thresholds;
  int32 n_thresholds;
  int32 side;           // which of two arrays is the last pile
  int64 pile_capacity;  // vertices per pile
  vertex_t* vertices;
  int64* sizes;

  // The first pile from `current` on whose threshold is above the distance; one past the last pile if it is infinite.
  KT_DEVICE int32 pile_for(ordered_t key, int32 current) const {
    int32 pile = current;
    while (pile < n_thresholds && key >= kt::load_constant(thresholds + pile)) ++pile;
    return key < kt::INFINITE ? pile : n_thresholds + 1;
  }
  KT_DEVICE void put(int32 pile, vertex_t v) const {
    const int64 place = pile < n_thresholds ? pile : pile + side;
    const uint32 same_pile = kt::match(kt::lanes_here(), pile);
    kt::Appender{vertices + place * pile_capacity, pile_capacity, sizes + pile}.append(v, same_pile);
  }
};

}  // namespace

// The lightest edge that leaves each vertex. The host initializes `lightest` to infinity.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_piles_lightest_warp(const offset_t* offsets, const vertex_t* targets, const weight_t* weights,
                             int64 n_vertices, ordered_t* lightest) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t) {
    const ordered_t key = kt::to_ordered(kt::load_constant(weights + e));
    if (key < kt::racy_load(lightest + u)) kt::atomic_min(lightest + u, key);  // an old value costs one atomic
  });
}

// The smallest distances, as differences from INFINITE, so that the host can clear the counters to 0.
//
//   counters[0]   INFINITE minus the smallest distance in the pile; 0 if the pile is empty
//   counters[1]   the same for the smallest sum of a distance and the vertex's lightest edge
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_piles_nearest(const vertex_t* pile, int64 size, const ordered_t* keys, ordered_t floor,
                       const ordered_t* lightest, int64* counters) {
  int64 gap = 0, gap_through = 0;
  for (int64 i = kt::thread_id(); i < size; i += kt::n_threads()) {
    const vertex_t v = kt::load_constant(pile + i);
    const ordered_t key = kt::load_constant(keys + v);
    if (key < floor) continue;
    if (kt::INFINITE - key > gap) gap = kt::INFINITE - key;
    if (!lightest) continue;
    const weight_t weight = kt::from_ordered<weight_t>(kt::load_constant(lightest + v));
    const ordered_t through = kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(key), weight));
    if (kt::INFINITE - through > gap_through) gap_through = kt::INFINITE - through;
  }
  if (gap) kt::atomic_max(counters, gap);
  if (gap_through) kt::atomic_max(counters + 1, gap_through);
}

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_piles_split(const PileArgs args) {
  const Piles piles = {args.thresholds, args.n_thresholds, args.side, args.pile_capacity, args.piles, args.sizes};
  for (int64 i = kt::thread_id(); i < args.size; i += kt::n_threads()) {
    const vertex_t v = kt::load_constant(args.vertices + i);
    const ordered_t key = kt::load_constant(args.keys + v);
    if (key >= args.floor) piles.put(piles.pile_for(key, 0), v);
  }
}

// Relaxes the edges of `vertices` with weights in (above, up_to].
extern "C" __global__ void __launch_bounds__(BLOCK) sssp_piles_relax(const PileArgs args) {
  const kt::Relaxing relaxing = {args.weights, kt::to_ordered(args.limit), args.keys, nullptr};
  const Piles piles = {args.thresholds, args.n_thresholds, args.side, args.pile_capacity, args.piles, args.sizes};
  const kt::Appender queue = {args.next, args.pile_capacity, args.counters};
  const offset_t* const offsets = args.offsets;
  const vertex_t* const vertices = args.vertices;
  int32* const queued_in = args.queued_in;
  const ordered_t floor = args.floor, above = args.above, up_to = args.up_to;
  const int32 current = args.current, keeps = args.keeps, round = args.round;
  const auto lists = [=](int64 i, bool) {
    const vertex_t u = vertices[i];
    return kt::racy_load(relaxing.keys + u) < floor ? kt::AdjacencyList{} : kt::adjacency_list(offsets, u);
  };
  const auto visit = [=](bool valid, vertex_t u, offset_t e, vertex_t v) {
    if (!valid) return;
    const ordered_t weight = kt::to_ordered(kt::load_constant(relaxing.weights + e));
    ordered_t key, before;
    if (weight <= above || weight > up_to) return;
    if (!relaxing.relax(u, kt::racy_load(relaxing.keys + u), e, v, key, before)) return;
    const int32 old_pile = piles.pile_for(before, current), new_pile = piles.pile_for(key, current);
    if (new_pile < old_pile && (new_pile > current || keeps)) piles.put(new_pile, v);
    if (new_pile == current && kt::atomic_exchange(queued_in + v, round) != round) queue.append(v);
  };
  // If there are more warps than groups of 32 adjacency lists, each warp takes fewer lists.
  const int32 at_once = WARP / kt::lanes_per_list(kt::n_threads(), args.size);
  kt::edges_by_discovery(args.targets, kt::whole_grid(), args.size, true, lists, visit, at_once);
}
