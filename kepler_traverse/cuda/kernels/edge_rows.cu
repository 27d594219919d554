// Rows of an edge list and the stored edges that they became.
//
//   threads   one per row
//
// Reads:  a CSR whose adjacency lists ascend; rows.   Writes: the edge of each row; per edge a weight or a row.
#include <kt/csr.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>

using ordered_t = kt::key_of<weight_t>;

// What the host passes (cuda/edge_rows.py).
struct FindArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* src;
  const vertex_t* dst;
  kt::int64 n_rows;
  kt::int64* edges;  // -1 - src where there is no edge from src to dst
};

extern "C" __global__ void __launch_bounds__(BLOCK) edge_rows_find(const FindArgs args) {
  for (kt::int64 i = kt::thread_id(); i < args.n_rows; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(args.src + i), v = kt::load_constant(args.dst + i);
    const offset_t end = kt::load_constant(args.offsets + u + 1);
    offset_t low = kt::load_constant(args.offsets + u), high = end;
    while (low < high) {
      const offset_t middle = low + (high - low) / 2;
      if (kt::load_constant(args.targets + middle) < v)
        low = middle + 1;
      else
        high = middle;
    }
    const bool found = low < end && kt::load_constant(args.targets + low) == v;
    args.edges[i] = found ? low : -1 - static_cast<kt::int64>(u);
  }
}

// The smallest weight of each edge that rows became.
extern "C" __global__ void __launch_bounds__(BLOCK)
    edge_rows_lower(const kt::int64* __restrict__ edges, const weight_t* __restrict__ weights, kt::int64 n_rows,
                    ordered_t* lowest) {
  for (kt::int64 i = kt::thread_id(); i < n_rows; i += kt::n_threads()) {
    const kt::int64 edge = kt::load_constant(edges + i);
    if (edge < 0) continue;
    const ordered_t key = kt::to_ordered(kt::load_constant(weights + i));
    // Weights only fall: an old value costs one atomic more.
    if (key < kt::racy_load(lowest + edge)) kt::atomic_min(lowest + edge, key);
  }
}

// The first row of each edge that has its weight. The rows here are those from first_row on.
extern "C" __global__ void __launch_bounds__(BLOCK)
    edge_rows_first(const kt::int64* __restrict__ edges, const weight_t* __restrict__ weights,
                    const weight_t* __restrict__ stored, kt::int64 n_rows, kt::int64 first_row, kt::int64* rows) {
  for (kt::int64 i = kt::thread_id(); i < n_rows; i += kt::n_threads()) {
    const kt::int64 edge = kt::load_constant(edges + i);
    if (edge < 0) continue;
    // By their order and not as floats, of which subnormal ones would be equal to 0.
    if (weights && kt::to_ordered(kt::load_constant(weights + i)) != kt::to_ordered(kt::load_constant(stored + edge)))
      continue;
    if (first_row + i < kt::racy_load(rows + edge)) kt::atomic_min(rows + edge, first_row + i);
  }
}
