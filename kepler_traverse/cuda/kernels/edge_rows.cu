// Rows of an edge list and the stored edges that they became.
//
//   threads   one per row
//
// Reads:  a CSR whose adjacency lists ascend; rows.   Writes: the edge of each row; per edge a weight or a row.
#include <kt/csr.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>

// What the host passes (cuda/edge_rows.py).
struct FindArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const vertex_t* src;
  const vertex_t* dst;
  int64 n_rows;
  int64* edges;  // -1 - src where there is no edge from src to dst
};

extern "C" __global__ void __launch_bounds__(BLOCK) edge_rows_find(const FindArgs args) {
  for (int64 i = kt::thread_id(); i < args.n_rows; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(args.src + i), v = kt::load_constant(args.dst + i);
    const offset_t end = kt::load_constant(args.offsets + u + 1);
    const auto is_past = [&](int64 e) { return kt::load_constant(args.targets + e) >= v; };
    const int64 edge = kt::first_where(kt::load_constant(args.offsets + u), end, is_past);
    const bool found = edge < end && kt::load_constant(args.targets + edge) == v;
    args.edges[i] = found ? edge : -1 - static_cast<int64>(u);
  }
}

// The first row of each edge that has its weight. The rows here are those from first_row on.
extern "C" __global__ void __launch_bounds__(BLOCK)
    edge_rows_first(const int64* edges, const weight_t* weights, const weight_t* stored, int64 n_rows, int64 first_row,
                    int64* rows) {
  for (int64 i = kt::thread_id(); i < n_rows; i += kt::n_threads()) {
    const int64 edge = kt::load_constant(edges + i);
    if (edge < 0) continue;
    // By their order and not as floats, of which subnormal ones would be equal to 0.
    if (weights && kt::to_ordered(kt::load_constant(weights + i)) != kt::to_ordered(kt::load_constant(stored + edge)))
      continue;
    if (first_row + i < kt::racy_load(rows + edge)) kt::atomic_min(rows + edge, first_row + i);
  }
}
