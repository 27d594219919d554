// Predecessors from final distances. They do not depend on the order of events.
//
// An edge (u, v) is tight if distance[u] + weight == distance[v], rounded as in the relaxation.
// A vertex takes the smallest of its tight in-neighbors that are strictly nearer; such
// predecessors cannot form a cycle. Some vertices are reached only by tight edges of zero or
// negative length. A BFS along tight edges, from the vertices resolved so far, reaches these. Each
// takes the smallest of its neighbors in the previous layer.
//
//   sssp_decode                     keys to distances, in place
//   sssp_count_overflows_warp       counts edges whose sums overflow
//   sssp_nearer_predecessors_warp   predecessors that are strictly nearer
//   sssp_list_resolved              the frontier of the BFS along tight edges
//   sssp_tight_predecessors_warp    one layer of that BFS
//
// Frontier    a queue in global memory. If it overflows, counters[0] is above `capacity`
// Visited     layer[v]: the layer of v, or UNRESOLVED
//
// All comparisons are on ordered integers (kt/float_order.cuh).
//
// Reads:  the graph and the distances.   Writes: predecessors, layers and the queue.
#include <kt/advance.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>

namespace {

constexpr int32 UNRESOLVED = -1;

struct Distances {
  const weight_t* distance;
  const weight_t* weights;

  KT_DEVICE ordered_t at(vertex_t v) const { return kt::to_ordered(kt::load_constant(distance + v)); }
  KT_DEVICE ordered_t through(vertex_t u, offset_t e) const {
    return kt::to_ordered(kt::add_rounded(kt::load_constant(distance + u), kt::load_constant(weights + e)));
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_decode(int64 n_vertices, ordered_t* keys) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads())
    keys[v] = kt::bits_of(kt::from_ordered<weight_t>(keys[v]));
}

// Counts into counters[0] the edges whose sum overflowed the type, so that a vertex with a path looks unreached.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_count_overflows_warp(const offset_t* offsets, const vertex_t* targets, const weight_t* weights,
                              int64 n_vertices, const weight_t* distance, int64* counters) {
  const Distances d = {distance, weights};
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t v) {
    if (kt::is_finite<weight_t>(d.at(u)) && !kt::is_finite<weight_t>(d.through(u, e)) &&
        !kt::is_finite<weight_t>(d.at(v)))
      kt::count(counters);
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_nearer_predecessors_warp(const offset_t* offsets, const vertex_t* targets, const weight_t* weights,
                                  int64 n_vertices, const weight_t* distance, vertex_t* predecessor) {
  const Distances d = {distance, weights};
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t v) {
    const ordered_t there = d.at(v);
    if (d.at(u) < there && kt::is_finite<weight_t>(there) && d.through(u, e) == there)
      kt::keep_smallest(predecessor + v, u);
  });
}

// What the host passes (sssp/gpu_steps.py), here and below.
struct ResolvedArgs {
  int64 n_vertices;
  const weight_t* distance;
  const vertex_t* predecessor;
  int64 capacity;
  int32* layer;
  vertex_t* queue;
  int64* counters;
};

// Queues the vertices that have a predecessor, in layer 0, and counts them in counters[0]. Counts the reached vertices
// in counters[1].
extern "C" __global__ void __launch_bounds__(BLOCK) sssp_list_resolved(const ResolvedArgs args) {
  const kt::Appender resolved = {args.queue, args.capacity, args.counters};
  for (int64 v = kt::thread_id(); v < args.n_vertices; v += kt::n_threads()) {
    const bool has = kt::load_constant(args.predecessor + v) != kt::NO_PREDECESSOR;
    args.layer[v] = has ? 0 : UNRESOLVED;
    if (has) resolved.append(static_cast<vertex_t>(v));
    if (kt::is_finite<weight_t>(kt::to_ordered(kt::load_constant(args.distance + v)))) kt::count(args.counters + 1);
  }
}

struct LayerArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  const weight_t* distance;
  const vertex_t* frontier;
  int64 n_frontier;
  int32 depth;  // of the layer that is found
  int64 capacity;
  int32* layer;
  vertex_t* predecessor;
  vertex_t* next;
  int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_tight_predecessors_warp(const LayerArgs args) {
  const Distances d = {args.distance, args.weights};
  const kt::Appender queue = {args.next, args.capacity, args.counters};
  const kt::Queue frontier = {args.frontier, args.n_frontier};
  kt::edges_by_warp({args.offsets, args.targets}, frontier, [&](vertex_t u, offset_t e, vertex_t v) {
    const ordered_t there = d.at(v);
    if (!kt::is_finite<weight_t>(there) || d.through(u, e) != there) return;
    // An old value can only be UNRESOLVED; then the compare-and-swap decides.
    int32 reached_in = kt::racy_load(args.layer + v);
    if (reached_in == UNRESOLVED) {
      reached_in = kt::compare_and_swap(args.layer + v, UNRESOLVED, args.depth);
      if (reached_in == UNRESOLVED) {
        queue.append(v);
        reached_in = args.depth;
      }
    }
    if (reached_in == args.depth) kt::keep_smallest(args.predecessor + v, u);
  });
}
