// Workfront Sweep: the edges of the frontier, not its vertices, are balanced over the warps.
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

// What the host passes (published/sssp/bellman_ford_gpu.py).
struct RelaxArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  const vertex_t* frontier;
  int64 n_frontier;
  const offset_t* ends;  // prefix sums of the degrees
  weight_t limit;
  int32 round;
  int64 capacity;  // of next
  ordered_t* keys;
  int32* queued_in;
  KT_NULLABLE vertex_t* parent;
  vertex_t* next;
  int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_work_front_degrees(const offset_t* offsets, const vertex_t* frontier, int64 n_frontier, offset_t* degrees) {
  for (int64 i = kt::thread_id(); i < n_frontier; i += kt::n_threads())
    degrees[i] = kt::degree_of(offsets, kt::load_constant(frontier + i));
}

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_work_front_relax(const RelaxArgs args) {
  const kt::Relaxing relaxing = {args.weights, kt::to_ordered(args.limit), args.keys, args.parent};
  const kt::Appender queue = {args.next, args.capacity, args.counters};
  const offset_t* const offsets = args.offsets;
  const vertex_t* const frontier = args.frontier;
  int32* const queued_in = args.queued_in;
  const int32 round = args.round;
  const auto lists = [=](int64 i, bool) { return kt::adjacency_list(offsets, kt::load_constant(frontier + i)); };
  kt::edges_balanced(args.targets, kt::whole_grid(), args.n_frontier, args.ends, lists,
                     [=](bool valid, vertex_t u, offset_t e, vertex_t v) {
                       if (!valid || !relaxing.relax(u, kt::racy_load(relaxing.keys + u), e, v)) return;
                       if (kt::atomic_exchange(queued_in + v, round) != round) queue.append(v);
                     });
}
