// One round of a frontier-based Bellman-Ford: every frontier vertex relaxes its edges.
//
// Distances are ordered integers (kt/float_order.cuh), so that relaxing is one atomic minimum
// (kt::Relaxing) and any order of events ends at the same distances. A vertex that is improved
// is queued at most once per round: queued_in[v] holds the last round that queued v, and the
// first thread to exchange it for this round appends v. A source distance may be old when it is
// read; its vertex is then in the next queue and relaxes its edges again.
//
// Reads:  the adjacency lists of the frontier, with weights.
// Writes: the distances that fall; the next queue, its size in counters[0].
//
// Busato, Bombieri. An efficient implementation of the Bellman-Ford algorithm
// for Kepler GPU architectures. IEEE TPDS 2015, algorithm 3.
#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/relax.cuh>

// What the host passes (sssp/gpu_steps.py).
struct RelaxArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  const vertex_t* frontier;
  int64 n_frontier;
  weight_t limit;  // vertices beyond it are not reached
  int32 round;     // its number
  int64 capacity;
  ordered_t* keys;
  int32* queued_in;  // [n_vertices]
  KT_NULLABLE vertex_t* parent;
  vertex_t* next;
  int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_relax_warp(const RelaxArgs args) {
  const kt::Relaxing relaxing = {args.weights, kt::to_ordered(args.limit), args.keys, args.parent};
  const kt::Appender queue = {args.next, args.capacity, args.counters};
  const kt::Queue frontier = {args.frontier, args.n_frontier};
  kt::edges_by_warp({args.offsets, args.targets}, frontier, [&](vertex_t u, offset_t e, vertex_t v) {
    if (!relaxing.relax(u, kt::racy_load(args.keys + u), e, v)) return;
    if (kt::atomic_exchange(args.queued_in + v, args.round) != args.round) queue.append(v);
  });
}
