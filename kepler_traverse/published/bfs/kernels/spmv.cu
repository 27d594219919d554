// A level as a product of a sparse matrix and a vector.
//
// AdjacencyList v of the matrix holds the vertices with an edge to v. The vector x is 1 for the vertices at the
// last level. Instead of sums of products, y holds minima: the smallest vertex of a row for which x is
// 1, which is the predecessor. Each row is read to its end, so each level costs all edges. A second
// kernel takes the discovered vertices from y, makes them the next x, and clears y.
//
// Deng, Wang, Mu. Taming irregular EDA applications on GPUs. ICCAD 2009, as described by
// Luo, Wong, Hwu 2010, section 2.
#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_product(const offset_t* in_offsets, const vertex_t* in_targets, int64 n_vertices, int32 width, const uint8* x,
                vertex_t* y) {
  kt::edges_by_virtual_warp(
      in_targets, kt::whole_grid(), n_vertices, width,
      [=](int64 v, bool) { return kt::adjacency_list(in_offsets, static_cast<vertex_t>(v)); },
      [=](bool valid, vertex_t v, offset_t, vertex_t u) {
        if (valid && kt::load_constant(x + u)) kt::keep_smallest(y + v, u);
      });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_product_take(int64 n_vertices, int32 level, vertex_t* y, uint8* x, int32* distance, vertex_t* predecessor,
                     int64* counters) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const bool is_new = y[v] != kt::NO_PREDECESSOR && distance[v] == kt::UNREACHED;
    x[v] = is_new;
    if (is_new) {
      distance[v] = level;
      if (predecessor) predecessor[v] = y[v];
      kt::count(counters);
    }
    y[v] = kt::NO_PREDECESSOR;
  }
}
