// Piles: vertices wait for their turn in piles by distance, which an ascending list of
// thresholds divides. Near-far has a list of one, bucketing a longer one; delta-stepping also
// tells light edges from heavy ones; a threshold that the vertices themselves give makes
// Dijkstra's frontier.
//
// Pile k < n_thresholds holds what fell below thresholds[k], and not below the one before;
// the last one all beyond. Any thread that lowers a vertex from one pile's distances to those of
// another puts it there, so it is in each pile once at most; in those that it has left its
// entry is stale, which its distance tells, below `floor`. The present pile is relaxed in
// rounds until nothing falls into it, and then no vertex below its threshold will ever fall
// again, as no weight is negative. Only when the list is through the last pile is divided
// anew.
//
//   threads   nearest, split: one a vertex; lightest, relax: see kt/advance.cuh
//
// Davidson, Baxter, Garland, Owens. IPDPS 2014 (Near-Far Pile, Bucketing). Meyer, Sanders.
// Delta-stepping. J. Algorithms 49, 2003. Martin, Torres, Gavilanes. ICCS 2009; Ortega-Arranz
// et al. 2013 (thresholds given by vertices).
#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/relax.cuh>

namespace {

using kt::int32;
using kt::int64;
using ordered_t = kt::key_of<weight_t>;
constexpr ordered_t INFINITE = kt::Key<weight_t>::INFINITE;

// Where a vertex goes by its distance.
struct Piles {
  const ordered_t* thresholds;
  int32 n_thresholds;
  int32 side;           // which of two arrays is the last pile
  int64 pile_capacity;  // of a pile
  vertex_t* vertices;
  int64* sizes;

  // The first pile from `present` on that the distance fits; one past the last for none.
  KT_DEVICE int32 of(ordered_t key, int32 present) const {
    int32 pile = present;
    while (pile < n_thresholds && key >= kt::load_constant(thresholds + pile)) ++pile;
    return key < INFINITE ? pile : n_thresholds + 1;
  }
  KT_DEVICE void put(int32 pile, vertex_t v) const {
    const int64 place = pile < n_thresholds ? pile : pile + side;
    const kt::uint32 for_the_same = kt::match(kt::lanes_here(), pile);
    kt::Appender{vertices + place * pile_capacity, pile_capacity, sizes + pile}.append(v, for_the_same);
  }
};

}  // namespace

// The shortest edge that leaves each vertex; all of `lightest` is infinite before.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_piles_lightest_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                             const weight_t* __restrict__ weights, int64 n_vertices, ordered_t* lightest) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t) {
    const ordered_t key = kt::to_ordered(kt::load_constant(weights + e));
    if (key < kt::racy_load(lightest + u)) kt::atomic_min(lightest + u, key);  // an old one costs an atomic
  });
}

// How far below INFINITE the nearest vertex of the pile lies, into counters[0], 0 if there is none; and into
// counters[1] the nearest that anything may come to lie that is reached over one of them, by `lightest`.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_piles_nearest(const vertex_t* __restrict__ pile, int64 size, const ordered_t* __restrict__ keys,
                       ordered_t floor, const ordered_t* __restrict__ lightest, int64* counters) {
  int64 gap = 0, gap_through = 0;
  for (int64 i = kt::thread_id(); i < size; i += kt::n_threads()) {
    const vertex_t v = kt::load_constant(pile + i);
    const ordered_t key = kt::load_constant(keys + v);
    if (key < floor) continue;
    if (INFINITE - key > gap) gap = INFINITE - key;
    if (!lightest) continue;
    const weight_t weight = kt::from_ordered<weight_t>(kt::load_constant(lightest + v));
    const ordered_t through = kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(key), weight));
    if (INFINITE - through > gap_through) gap_through = INFINITE - through;
  }
  if (gap) kt::atomic_max(counters, gap);
  if (gap_through) kt::atomic_max(counters + 1, gap_through);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_piles_split(const vertex_t* __restrict__ pile, int64 size, const ordered_t* __restrict__ keys, ordered_t floor,
                     const ordered_t* __restrict__ thresholds, int32 n_thresholds, int32 side, int64 pile_capacity,
                     vertex_t* piles, int64* sizes) {
  const Piles into = {thresholds, n_thresholds, side, pile_capacity, piles, sizes};
  for (int64 i = kt::thread_id(); i < size; i += kt::n_threads()) {
    const vertex_t v = kt::load_constant(pile + i);
    const ordered_t key = kt::load_constant(keys + v);
    if (key >= floor) into.put(into.of(key, 0), v);
  }
}

// Relaxes the edges of a list, either the present pile or what fell into it in the round before, whose weights are
// above `lighter` and up to `heaviest`. With `keeps`, the pile also takes those that fall into it.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_piles_relax(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                     const weight_t* __restrict__ weights, const vertex_t* list, int64 size, weight_t limit,
                     ordered_t floor, ordered_t lighter, ordered_t heaviest, const ordered_t* __restrict__ thresholds,
                     int32 n_thresholds, int32 side, int32 present, int32 keeps, int32 round, int64 pile_capacity,
                     ordered_t* keys, int32* queued_in, vertex_t* next, vertex_t* piles, int64* sizes,
                     int64* counters) {
  const kt::Relaxing relaxing = {weights, kt::to_ordered(limit), keys, nullptr};
  const Piles into = {thresholds, n_thresholds, side, pile_capacity, piles, sizes};
  const kt::Appender queue = {next, pile_capacity, counters};
  const auto rows = [=](int64 i, bool) {
    const vertex_t u = list[i];
    return kt::racy_load(keys + u) < floor ? kt::AdjacencyList{} : kt::adjacency_list(offsets, u);
  };
  const auto visit = [=](bool valid, vertex_t u, offset_t e, vertex_t v) {
    if (!valid) return;
    const ordered_t weight = kt::to_ordered(kt::load_constant(weights + e));
    ordered_t key, before;
    if (weight <= lighter || weight > heaviest) return;
    if (!relaxing.relax(u, kt::racy_load(keys + u), e, v, key, before)) return;
    const int32 was = into.of(before, present), is = into.of(key, present);
    if (is < was && (is > present || keeps)) into.put(is, v);
    if (is == present && kt::atomic_exchange(queued_in + v, round) != round) queue.append(v);
  };
  // Where there are more warps than lists of 32 rows, each takes fewer of them.
  const int32 at_once = kt::WARP / kt::lanes_per_list(kt::n_threads(), size);
  kt::edges_by_discovery(targets, kt::whole_grid(), size, true, rows, visit, at_once);
}
