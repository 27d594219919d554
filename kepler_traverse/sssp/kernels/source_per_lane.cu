// Shortest paths from 32 sources at once, one source per lane.
//
// The 32 distances of a vertex are adjacent in memory. One launch is one round: it relaxes every
// vertex that a source's distance improved. A warp reads an edge once for all sources, and the
// distances of its two ends as whole cache lines. Adjacency lists of CHUNK edges or more are
// relaxed in chunks, by several warps.
//
// Frontier    bitsets, one per vertex with one bit per source: `now` for this round, `next` for
//             the one after. A distance at the threshold or beyond waits: its bit goes to `next`
//             unrelaxed. The host raises the threshold when no vertex is below it.
// Visited     none: an atomic minimum on a distance, an ordered integer, decides
//
//   counters  [improvements below the threshold, counted once per edge; edges relaxed; INFINITE
//             minus the smallest distance that waits]
//
// Reads:  `now`; the adjacency lists of its vertices, with weights; distances.
// Writes: the distances that fall, their bits in `next`, and the counters.
//
// Compile-time constants:
//   BLOCK   threads per block
//   CHUNK   edges per chunk of a long adjacency list
//
// After Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source shortest paths.
// IPDPS 2014, and Then et al. 2014 (MS-BFS), who share edges among searches.
#include <kt/advance.cuh>
#include <kt/float_order.cuh>

namespace {

enum Counters { NEAR, EDGES, GAP };

struct Relaxing {
  const vertex_t* targets;
  const weight_t* weights;
  ordered_t threshold;
  ordered_t limit;
  ordered_t* keys;
  uint32* next;
  int64 near = 0, edges = 0, gap = 0;

  // A vertex that waits for a later threshold: `gap` becomes INFINITE minus the least such distance.
  KT_DEVICE void wait(bool waits, ordered_t key) {
    if (waits && kt::INFINITE - key > gap) gap = kt::INFINITE - key;
  }

  // Relaxes an adjacency list, or a chunk of one, for a bitset of sources. All lanes of a warp call it. `is_first`:
  // true for one chunk of a list only.
  KT_DEVICE void relax(const kt::AdjacencyList& list, uint32 sources, bool is_first) {
    // Sources from which the vertex is at or beyond the threshold wait.
    const int32 lane = kt::lane();
    const bool is_set = (sources >> lane & 1u) != 0;
    // May be old: a thread that improves it from now on sets its bit in `next`.
    const ordered_t here = is_set ? kt::racy_load(keys + int64{list.u} * WARP + lane) : kt::INFINITE;
    const bool waits = is_set && here >= threshold;
    const bool is_near = is_set && !waits;
    const uint32 waiting = kt::ballot(ALL_LANES, waits);
    if (is_first) wait(waits, here);
    if (is_first && lane == 0 && waiting) kt::atomic_or(next + list.u, waiting);
    if (waiting == sources) return;

    // The edges, one after another, each for all other sources at once.
    const weight_t distance = kt::from_ordered<weight_t>(here);
    edges += list.end - list.begin;
    kt::edges_of_list(targets, {0, 1}, list, [&](bool valid, vertex_t, offset_t e, vertex_t v) {
      const weight_t weight = valid ? kt::load_constant(weights + e) : static_cast<weight_t>(0);
      constexpr int32 IN_FLIGHT = 4;  // edges whose distances are loaded together
      const int32 n = kt::count_lanes(kt::ballot(ALL_LANES, valid));
      for (int32 first = 0; first < n; first += IN_FLIGHT) {
        ordered_t key[IN_FLIGHT], before[IN_FLIGHT];
        vertex_t to[IN_FLIGHT];
#pragma unroll
        for (int32 i = 0; i < IN_FLIGHT; ++i) {
          const int32 from = first + i < n ? first + i : n - 1;
          to[i] = kt::broadcast(ALL_LANES, v, from);
          key[i] = kt::to_ordered(kt::add_rounded(distance, kt::broadcast(ALL_LANES, weight, from)));
          before[i] = is_near ? kt::racy_load(keys + int64{to[i]} * WARP + lane) : 0;
        }
#pragma unroll
        for (int32 i = 0; i < IN_FLIGHT; ++i) {
          // An old value is too large; then the result of the atomic decides.
          const bool is_lower = first + i < n && is_near && key[i] <= limit && key[i] < before[i] &&
                                key[i] < kt::atomic_min(keys + int64{to[i]} * WARP + lane, key[i]);
          const uint32 improved = kt::ballot(ALL_LANES, is_lower);
          if (improved == 0) continue;
          if (lane == 0) kt::atomic_or(next + to[i], improved);
          wait(is_lower && key[i] >= threshold, key[i]);
          near += kt::any(ALL_LANES, is_lower && key[i] < threshold);
        }
      }
    });
  }

  KT_DEVICE void add_counts(int64* counters) {
    gap = kt::largest_of_all(gap);
    if (kt::lane()) return;
    if (near) kt::atomic_add(counters + NEAR, near);
    if (edges) kt::atomic_add(counters + EDGES, edges);
    if (gap) kt::atomic_max(counters + GAP, gap);
  }
};

}  // namespace

// What the host passes (sssp/multi_source/source_per_lane.py).
struct RelaxArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  const uint64* hub_chunks;  // of adjacency lists of CHUNK edges or more: number of the chunk above, vertex below
  int64 n_hub_chunks;
  weight_t threshold;
  weight_t limit;   // vertices beyond it are not reached
  ordered_t* keys;  // [n_vertices][32]
  const uint32* now;
  uint32* next;
  int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_source_per_lane_warp(const RelaxArgs args) {
  Relaxing relaxing{args.targets, args.weights, kt::to_ordered(args.threshold), kt::to_ordered(args.limit),
                    args.keys,    args.next};

  // The chunks of long lists, a warp each.
  for (int64 i = kt::warp_id(); i < args.n_hub_chunks; i += kt::n_warps()) {
    const uint64 chunk = kt::load_constant(args.hub_chunks + i);
    const kt::AdjacencyList list = kt::chunk_of<CHUNK>(args.offsets, chunk);
    const uint32 sources = kt::load_constant(args.now + list.u);
    if (sources) relaxing.relax(list, sources, chunk >> 32 == 0);
  }

  // The other lists, 32 vertices per warp: it relaxes the lists of those that have sources, one after another.
  for (int64 first = kt::warp_id() * WARP; first < args.n_vertices; first += kt::n_warps() * WARP) {
    const int64 mine = first + kt::lane();
    uint32 sources = mine < args.n_vertices ? kt::load_constant(args.now + mine) : 0;
    const kt::AdjacencyList list =
        sources ? kt::adjacency_list(args.offsets, static_cast<vertex_t>(mine)) : kt::AdjacencyList{};
    if (list.end - list.begin >= CHUNK) sources = 0;
    for (uint32 left = kt::ballot(ALL_LANES, sources != 0); left; left &= left - 1) {
      const int32 owner = kt::first_lane(left);
      relaxing.relax({kt::broadcast(ALL_LANES, list.u, owner), kt::broadcast(ALL_LANES, list.begin, owner),
                      kt::broadcast(ALL_LANES, list.end, owner)},
                     kt::broadcast(ALL_LANES, sources, owner), true);
    }
  }
  relaxing.add_counts(args.counters);
}
