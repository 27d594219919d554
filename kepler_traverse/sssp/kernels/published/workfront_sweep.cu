// Workfront Sweep: the edges of the frontier, not its vertices, are divided evenly.
//
// Before a round the degrees of the frontier are summed (the host calls a scan between the kernels).
// Every warp takes the same number of edges: see published/advance_balanced.cuh. An improved vertex
// enters the next frontier once, since queued_in holds the last round that queued it.
//
//   threads   degrees: one per vertex; relax: see published/advance_balanced.cuh
//
// Reads:  n_frontier offsets, their edges and weights.   Writes: the distances that fall.
//
// Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source
// shortest paths. IPDPS 2014 (Workfront Sweep).
#include <kt/frontier_queue.cuh>
#include <kt/relax.cuh>

#include "advance_balanced.cuh"

using ordered_t = kt::key_of<weight_t>;

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_work_front_degrees(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ frontier,
                            kt::int64 n_frontier, offset_t* degrees) {
  for (kt::int64 i = kt::thread_id(); i < n_frontier; i += kt::n_threads()) {
    const kt::AdjacencyList row = kt::adjacency_list(offsets, kt::load_constant(frontier + i));
    degrees[i] = row.end - row.begin;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_work_front_relax(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                          const weight_t* __restrict__ weights, const vertex_t* __restrict__ frontier,
                          kt::int64 n_frontier, const offset_t* __restrict__ ends, weight_t limit, kt::int32 round,
                          kt::int64 capacity, ordered_t* keys, kt::int32* queued_in, vertex_t* parent, vertex_t* next,
                          kt::int64* counters) {
  const kt::Relaxing relaxing = {weights, kt::to_ordered(limit), keys, parent};
  const kt::Appender queue = {next, capacity, counters};
  const auto rows = [=](kt::int64 i, bool) { return kt::adjacency_list(offsets, kt::load_constant(frontier + i)); };
  kt::edges_balanced(targets, kt::whole_grid(), n_frontier, ends, rows,
                     [=](bool valid, vertex_t u, offset_t e, vertex_t v) {
                       if (!valid || !relaxing.relax(u, kt::racy_load(keys + u), e, v)) return;
                       if (kt::atomic_exchange(queued_in + v, round) != round) queue.append(v);
                     });
}
