// Relax: every frontier vertex offers its neighbours a path through itself.
//
// Distances are kept as ordered integers (kt/ordered.cuh), so an offer is one
// atomic minimum, and any order of offers ends at the same distances. A vertex
// whose distance fell is queued once a round: queued_in[v] holds the last round
// that queued it, and the first to write this one appends. A distance read while
// others lower it is old, not wrong: that vertex is on the next queue by then.
//
//   threads   see kt/edges.cuh
//   reads     n_frontier offsets, their edges and weights    writes   what fell
//
// Busato, Bombieri. An efficient implementation of the Bellman-Ford algorithm
// for Kepler GPU architectures. IEEE TPDS 2015, algorithm 3.
#include <kt/edges.cuh>
#include <kt/ordered.cuh>
#include <kt/queue.cuh>

using ordered_t = kt::key_of<weight_t>;

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_relax_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                    const weight_t* __restrict__ weights, const vertex_t* __restrict__ frontier, kt::int64 n_frontier,
                    weight_t limit, kt::int32 round, kt::int64 capacity, ordered_t* keys, kt::int32* queued_in,
                    vertex_t* parent, vertex_t* next, kt::int64* counters) {
  const ordered_t farthest = kt::to_ordered(limit);
  const kt::Appender queue = {next, capacity, counters};
  kt::edges_by_warp({offsets, targets}, kt::Queue{frontier, n_frontier}, [=](vertex_t u, offset_t e, vertex_t v) {
    const weight_t nearer = kt::from_ordered<weight_t>(kt::racy_load(keys + u));
    const ordered_t key = kt::to_ordered(kt::add_rounded(nearer, kt::load_constant(weights + e)));
    // Distances only fall: an old one lets an offer through that the atomic then refuses.
    if (key > farthest || key >= kt::racy_load(keys + v)) return;
    if (kt::atomic_min(keys + v, key) <= key) return;
    // May race with another lowering of v: only the search for cycles reads it, and checks what it finds.
    if (parent) kt::racy_store(parent + v, u);
    if (kt::atomic_exchange(queued_in + v, round) != round) queue.append(v);
  });
}
