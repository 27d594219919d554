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

// counts[u + 1] counts the edges of u. counters[0] counts self-loops, which are left out of the CSR.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_degrees(const vertex_t* src, const vertex_t* dst, int64 n_edges, int32 both_ways, int64* counts,
                      int64* counters) {
  for (int64 i = kt::thread_id(); i < n_edges; i += kt::n_threads()) {
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
  int64 n_edges;  // edges of the edge list
  int32 both_ways;
  int64* cursor;
  vertex_t* targets;
  KT_NULLABLE weight_t* weights;
};

extern "C" __global__ void __launch_bounds__(BLOCK) csr_scatter(const ScatterArgs args) {
  // The cursor of a vertex is where the next edge of its list goes.
  for (int64 i = kt::thread_id(); i < args.n_edges; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(args.src + i), v = kt::load_constant(args.dst + i);
    if (u == v) continue;
    int64 at = kt::atomic_add(args.cursor + u, 1);
    args.targets[at] = v;
    if (args.weights) args.weights[at] = kt::load_constant(args.weight + i);
    if (!args.both_ways) continue;
    at = kt::atomic_add(args.cursor + v, 1);
    args.targets[at] = u;
    if (args.weights) args.weights[at] = kt::load_constant(args.weight + i);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_targets(const vertex_t* targets, int64 n_edges, int64* counts) {
  // counts[v + 1] counts the edges into v.
  for (int64 e = kt::thread_id(); e < n_edges; e += kt::n_threads())
    kt::atomic_add(counts + kt::load_constant(targets + e) + 1, 1);
}

struct ReverseArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const weight_t* weights;
  int64 n_vertices;
  int64* cursor;
  vertex_t* sources;
  KT_NULLABLE weight_t* reverse_weights;
};

extern "C" __global__ void __launch_bounds__(BLOCK) csr_scatter_reverse_warp(const ReverseArgs args) {
  // Each edge goes to the next place in the list of its target, as an edge from there to u.
  const kt::Range vertices = {0, args.n_vertices};
  kt::edges_by_warp({args.offsets, args.targets}, vertices, [&](vertex_t u, offset_t e, vertex_t v) {
    const int64 at = kt::atomic_add(args.cursor + v, 1);
    args.sources[at] = u;
    if (args.weights) args.reverse_weights[at] = kt::load_constant(args.weights + e);
  });
}

struct SortKeyArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  int64 first_vertex;
  int64 n_vertices;
  int64 first_edge;  // of the first vertex
  int32 target_bits;
  int64* keys;
};

// Sort keys that ascend by vertex, then by target, for some adjacent vertices.
extern "C" __global__ void __launch_bounds__(BLOCK) csr_sort_keys_warp(const SortKeyArgs args) {
  const kt::Range vertices = {args.first_vertex, args.n_vertices};
  kt::edges_by_warp({args.offsets, args.targets}, vertices, [&](vertex_t u, offset_t e, vertex_t v) {
    const int64 vertex = static_cast<int64>(u) - args.first_vertex;
    args.keys[e - args.first_edge] = vertex << args.target_bits | static_cast<int64>(v);
  });
}

// Adds the element before one, which ends the prefix sums so far.
extern "C" __global__ void __launch_bounds__(BLOCK) csr_carry(int64* counts, int64 position) {
  if (kt::thread_id() == 0) counts[position] += counts[position - 1];
}

namespace {
// Of the sorted keys, equal ones are parallel edges: a set, which the first of them begins.
KT_DEVICE bool begins_set(const int64* keys, int64 i) {
  return i == 0 || kt::load_constant(keys + i) != kt::load_constant(keys + i - 1);
}
}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) csr_count_sets(const int64* keys, int64 n_keys, int64* counter) {
  for (int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads())
    if (begins_set(keys, i)) kt::count(counter);
}

extern "C" __global__ void __launch_bounds__(BLOCK) csr_flag_sets(const int64* keys, int64 n_keys, int64* flags) {
  for (int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads()) flags[i] = begins_set(keys, i);
}

// The first of each set, with its weight. sets are the prefix sums of flags, so the sets are numbered from 1.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_take_sets(const int64* keys, const int64* sets, const weight_t* weights, int64 n_keys, int64* first_keys,
                  ordered_t* lowest) {
  for (int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads()) {
    if (!begins_set(keys, i)) continue;
    const int64 set = kt::load_constant(sets + i) - 1;
    first_keys[set] = kt::load_constant(keys + i);
    if (weights) lowest[set] = kt::to_ordered(kt::load_constant(weights + i));
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_reorder(const int64* order, const int64* keys, const weight_t* weights, int64 n_keys, int64* sorted_keys,
                weight_t* sorted_weights) {
  // order has the position of each key before the sort.
  for (int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads()) {
    const int64 from = kt::load_constant(order + i);
    sorted_keys[i] = kt::load_constant(keys + from);
    sorted_weights[i] = kt::load_constant(weights + from);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_store_targets(const int64* keys, int64 n_keys, int32 target_bits, vertex_t* targets) {
  // The lower bits of a key are the target.
  const int64 mask = (1ll << target_bits) - 1;
  for (int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads())
    targets[i] = static_cast<vertex_t>(kt::load_constant(keys + i) & mask);
}

// Where the list of each vertex begins: at `first`, behind the keys of the vertices before it.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_find_starts(const int64* keys, int64 n_keys, int64 n_rows, int32 target_bits, int64 first, offset_t* starts) {
  for (int64 row = kt::thread_id(); row < n_rows; row += kt::n_threads()) {
    // The least key that a vertex can have.
    const int64 first_key = row << target_bits;
    starts[row] = first + kt::first_where(0, n_keys, [=](int64 i) { return kt::load_constant(keys + i) >= first_key; });
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_mark_targets(const vertex_t* targets, int64 n_edges, uint8* is_target) {
  // Every thread that marks a vertex stores the same byte.
  for (int64 e = kt::thread_id(); e < n_edges; e += kt::n_threads())
    kt::racy_store(is_target + kt::load_constant(targets + e), static_cast<uint8>(1));
}

// is_target is null where every edge is stored in both directions.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_isolated(const offset_t* offsets, const uint8* is_target, int64 n_vertices, int64* counter) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    if (kt::load_constant(offsets + v) != kt::load_constant(offsets + v + 1)) continue;
    if (!is_target || !kt::load_constant(is_target + v)) kt::count(counter);
  }
}

// The smallest weight of each edge; weight i is one of edge edges[i] - first, or of none where that is negative.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_lower_weights(const int64* edges, const weight_t* weights, int64 n_weights, int64 first, ordered_t* lowest) {
  for (int64 i = kt::thread_id(); i < n_weights; i += kt::n_threads()) {
    const int64 edge = kt::load_constant(edges + i) - first;
    if (edge < 0) continue;
    const ordered_t key = kt::to_ordered(kt::load_constant(weights + i));
    // Weights only fall: an old value costs one atomic more.
    if (key < kt::racy_load(lowest + edge)) kt::atomic_min(lowest + edge, key);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_decode_weights(const ordered_t* lowest, int64 n_edges, weight_t* weights) {
  for (int64 i = kt::thread_id(); i < n_edges; i += kt::n_threads())
    weights[i] = kt::from_ordered<weight_t>(kt::load_constant(lowest + i));
}
