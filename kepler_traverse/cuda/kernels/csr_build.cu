// Builds a CSR: counts the edges of each adjacency list, then scatters each edge into its list.
//
// An atomic cursor per vertex gives edges their positions, so their order within a list varies. The
// lists are sorted afterwards (cuda/csr_build.py), which makes the result deterministic.
//
//   threads   one per edge of an edge list; for a CSR see kt/advance.cuh
//
// Reads:  the edge list, or a CSR to reverse.   Writes: degrees; targets and weights.
#include <kt/advance.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>

using ordered_t = kt::key_of<weight_t>;

// counts[u + 1] counts the edges of u. counters[0] counts self-loops, which are left out of the CSR.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_degrees(const vertex_t* __restrict__ src, const vertex_t* __restrict__ dst, kt::int64 n_edges,
                      kt::int32 both_ways, kt::int64* counts, kt::int64* counters) {
  for (kt::int64 i = kt::thread_id(); i < n_edges; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(src + i), v = kt::load_constant(dst + i);
    if (u == v) {
      kt::count(counters);
      continue;
    }
    kt::atomic_add(counts + u + 1, 1);
    if (both_ways) kt::atomic_add(counts + v + 1, 1);
  }
}

// What the host passes (cuda/csr_build.py), here and below.
struct ScatterArgs {
  const vertex_t* src;
  const vertex_t* dst;
  KT_NULLABLE const weight_t* weight;
  kt::int64 n_edges;  // edges of the edge list
  kt::int32 both_ways;
  kt::int64* cursor;
  vertex_t* targets;
  KT_NULLABLE weight_t* weights;
};

extern "C" __global__ void __launch_bounds__(BLOCK) csr_scatter(const ScatterArgs args) {
  for (kt::int64 i = kt::thread_id(); i < args.n_edges; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(args.src + i), v = kt::load_constant(args.dst + i);
    if (u == v) continue;
    kt::int64 at = kt::atomic_add(args.cursor + u, 1);
    args.targets[at] = v;
    if (args.weights) args.weights[at] = kt::load_constant(args.weight + i);
    if (!args.both_ways) continue;
    at = kt::atomic_add(args.cursor + v, 1);
    args.targets[at] = u;
    if (args.weights) args.weights[at] = kt::load_constant(args.weight + i);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_targets(const vertex_t* __restrict__ targets, kt::int64 n_edges, kt::int64* counts) {
  for (kt::int64 e = kt::thread_id(); e < n_edges; e += kt::n_threads())
    kt::atomic_add(counts + kt::load_constant(targets + e) + 1, 1);
}

struct ReverseArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const weight_t* weights;
  kt::int64 n_vertices;
  kt::int64* cursor;
  vertex_t* sources;
  KT_NULLABLE weight_t* reverse_weights;
};

extern "C" __global__ void __launch_bounds__(BLOCK) csr_scatter_reverse_warp(const ReverseArgs args) {
  const kt::Range vertices = {0, args.n_vertices};
  kt::edges_by_warp({args.offsets, args.targets}, vertices, [&](vertex_t u, offset_t e, vertex_t v) {
    const kt::int64 at = kt::atomic_add(args.cursor + v, 1);
    args.sources[at] = u;
    if (args.weights) args.reverse_weights[at] = kt::load_constant(args.weights + e);
  });
}

struct SortKeyArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  kt::int64 first_vertex;
  kt::int64 n_vertices;
  kt::int64 first_edge;  // of the first vertex
  kt::int32 target_bits;
  kt::int64* keys;
};

// Sort keys that ascend by vertex, then by target, for some adjacent vertices.
extern "C" __global__ void __launch_bounds__(BLOCK) csr_sort_keys_warp(const SortKeyArgs args) {
  const kt::Range vertices = {args.first_vertex, args.n_vertices};
  kt::edges_by_warp({args.offsets, args.targets}, vertices, [&](vertex_t u, offset_t e, vertex_t v) {
    const kt::int64 vertex = static_cast<kt::int64>(u) - args.first_vertex;
    args.keys[e - args.first_edge] = vertex << args.target_bits | static_cast<kt::int64>(v);
  });
}

// The smallest weight of each set of parallel edges; edge i belongs to set sets[i].
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_lower_weights(const kt::int64* __restrict__ sets, const weight_t* __restrict__ weights, kt::int64 n_edges,
                      ordered_t* lowest) {
  for (kt::int64 i = kt::thread_id(); i < n_edges; i += kt::n_threads()) {
    ordered_t* place = lowest + kt::load_constant(sets + i);
    const ordered_t key = kt::to_ordered(kt::load_constant(weights + i));
    // Weights only fall: an old value costs one atomic more.
    if (key < kt::racy_load(place)) kt::atomic_min(place, key);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_decode_weights(const ordered_t* __restrict__ lowest, kt::int64 n_edges, weight_t* weights) {
  for (kt::int64 i = kt::thread_id(); i < n_edges; i += kt::n_threads())
    weights[i] = kt::from_ordered<weight_t>(kt::load_constant(lowest + i));
}
