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

// marks are positions of edges; rows are the vertices that they belong to.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_find_rows(const offset_t* __restrict__ offsets, kt::int64 n_vertices, const kt::int64* __restrict__ marks,
                  kt::int64 n_marks, kt::int64* rows) {
  for (kt::int64 i = kt::thread_id(); i < n_marks; i += kt::n_threads()) {
    const kt::int64 mark = kt::load_constant(marks + i);
    kt::int64 low = 0, high = n_vertices;  // the first vertex whose list ends behind the mark
    while (low < high) {
      const kt::int64 middle = low + (high - low) / 2;
      if (kt::load_constant(offsets + middle + 1) <= mark)
        low = middle + 1;
      else
        high = middle;
    }
    rows[i] = low;
  }
}

// Adds the element before one, which ends the prefix sums so far.
extern "C" __global__ void __launch_bounds__(BLOCK) csr_carry(kt::int64* counts, kt::int64 position) {
  if (kt::thread_id() == 0) counts[position] += counts[position - 1];
}

namespace {
// Of the sorted keys, equal ones are parallel edges: a set, which the first of them begins.
KT_DEVICE bool begins_set(const kt::int64* keys, kt::int64 i) {
  return i == 0 || kt::load_constant(keys + i) != kt::load_constant(keys + i - 1);
}
}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_sets(const kt::int64* __restrict__ keys, kt::int64 n_keys, kt::int64* counter) {
  for (kt::int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads())
    if (begins_set(keys, i)) kt::count(counter);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_flag_sets(const kt::int64* __restrict__ keys, kt::int64 n_keys, kt::int64* flags) {
  for (kt::int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads()) flags[i] = begins_set(keys, i);
}

// The first of each set, with its weight. sets are the prefix sums of flags, so the sets are numbered from 1.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_take_sets(const kt::int64* __restrict__ keys, const kt::int64* __restrict__ sets,
                  const weight_t* __restrict__ weights, kt::int64 n_keys, kt::int64* first_keys, ordered_t* lowest) {
  for (kt::int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads()) {
    if (!begins_set(keys, i)) continue;
    const kt::int64 set = kt::load_constant(sets + i) - 1;
    first_keys[set] = kt::load_constant(keys + i);
    if (weights) lowest[set] = kt::to_ordered(kt::load_constant(weights + i));
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_reorder(const kt::int64* __restrict__ order, const kt::int64* __restrict__ keys,
                const weight_t* __restrict__ weights, kt::int64 n_keys, kt::int64* sorted_keys,
                weight_t* sorted_weights) {
  for (kt::int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads()) {
    const kt::int64 from = kt::load_constant(order + i);
    sorted_keys[i] = kt::load_constant(keys + from);
    sorted_weights[i] = kt::load_constant(weights + from);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_store_targets(const kt::int64* __restrict__ keys, kt::int64 n_keys, kt::int32 target_bits, vertex_t* targets) {
  const kt::int64 mask = (1ll << target_bits) - 1;
  for (kt::int64 i = kt::thread_id(); i < n_keys; i += kt::n_threads())
    targets[i] = static_cast<vertex_t>(kt::load_constant(keys + i) & mask);
}

// Where the list of each vertex begins: at `first`, behind the keys of the vertices before it.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_find_starts(const kt::int64* __restrict__ keys, kt::int64 n_keys, kt::int64 n_rows, kt::int32 target_bits,
                    kt::int64 first, offset_t* starts) {
  for (kt::int64 row = kt::thread_id(); row < n_rows; row += kt::n_threads()) {
    const kt::int64 first_key = row << target_bits;
    kt::int64 low = 0, high = n_keys;
    while (low < high) {
      const kt::int64 middle = low + (high - low) / 2;
      if (kt::load_constant(keys + middle) < first_key)
        low = middle + 1;
      else
        high = middle;
    }
    starts[row] = first + low;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_mark_targets(const vertex_t* __restrict__ targets, kt::int64 n_edges, kt::uint8* is_target) {
  // Every thread that marks a vertex stores the same byte.
  for (kt::int64 e = kt::thread_id(); e < n_edges; e += kt::n_threads())
    kt::racy_store(is_target + kt::load_constant(targets + e), static_cast<kt::uint8>(1));
}

// is_target is null where every edge is stored in both directions.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_count_isolated(const offset_t* __restrict__ offsets, const kt::uint8* __restrict__ is_target,
                       kt::int64 n_vertices, kt::int64* counter) {
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    if (kt::load_constant(offsets + v) != kt::load_constant(offsets + v + 1)) continue;
    if (!is_target || !kt::load_constant(is_target + v)) kt::count(counter);
  }
}

// The smallest weight of each set of parallel edges; edge i belongs to set sets[i] - 1.
extern "C" __global__ void __launch_bounds__(BLOCK)
    csr_lower_weights(const kt::int64* __restrict__ sets, const weight_t* __restrict__ weights, kt::int64 n_edges,
                      ordered_t* lowest) {
  for (kt::int64 i = kt::thread_id(); i < n_edges; i += kt::n_threads()) {
    ordered_t* place = lowest + kt::load_constant(sets + i) - 1;
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
