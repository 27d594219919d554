// Check: one pass over the edges that a right answer passes without a finding.
//
// counts[0] counts edges over which a shorter distance could be had (C3), and
// counts[1] becomes the smallest vertex such an edge leads to; explained[v] is
// set where the edge from v's predecessor gives exactly v's distance, and the
// second kernel counts reached vertices without one (C4) in counts[2] and [3].
// No two threads set one explained[v]: a graph has each edge once.
//
//   threads   see kt/edges.cuh; then one a vertex
#include <kt/edges.cuh>
#include <kt/ordered.cuh>
#include <kt/queue.cuh>

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_check_hops_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                                kt::int64 n_vertices, const kt::int32* __restrict__ distance,
                                const vertex_t* __restrict__ predecessor, kt::int32 limit, kt::uint8* explained,
                                kt::int64* counts) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t, vertex_t v) {
    const kt::int32 here = kt::load_constant(distance + u), there = kt::load_constant(distance + v);
    if (here == kt::UNREACHED) return;
    const kt::int32 hops = here + 1;
    if (hops <= limit && (there == kt::UNREACHED || there > hops)) {
      kt::count(counts);
      kt::atomic_min(counts + 1, static_cast<kt::int64>(v));
    }
    if (there == hops && kt::load_constant(predecessor + v) == u) explained[v] = 1;
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_check_weighted_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                                    const weight_t* __restrict__ weights, kt::int64 n_vertices,
                                    const weight_t* __restrict__ distance, const vertex_t* __restrict__ predecessor,
                                    weight_t limit, kt::uint8* explained, kt::int64* counts) {
  using ordered_t = kt::key_of<weight_t>;
  const ordered_t farthest = kt::to_ordered(limit);
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t v) {
    const weight_t here = kt::load_constant(distance + u);
    if (kt::to_ordered(here) == kt::Key<weight_t>::INFINITE) return;
    const ordered_t there = kt::to_ordered(kt::load_constant(distance + v));
    const ordered_t through = kt::to_ordered(kt::add_rounded(here, kt::load_constant(weights + e)));
    if (through <= farthest && there > through) {
      kt::count(counts);
      kt::atomic_min(counts + 1, static_cast<kt::int64>(v));
    }
    if (there == through && kt::load_constant(predecessor + v) == u) explained[v] = 1;
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_count_unexplained(const vertex_t* __restrict__ predecessor, kt::int64 n_vertices,
                                  const kt::uint8* __restrict__ explained, kt::int64* counts) {
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    if (kt::load_constant(predecessor + v) == kt::NO_PREDECESSOR || kt::load_constant(explained + v)) continue;
    kt::count(counts + 2);
    kt::atomic_min(counts + 3, v);
  }
}
