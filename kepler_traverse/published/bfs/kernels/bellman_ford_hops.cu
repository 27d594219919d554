// BFS as Bellman-Ford: every round relaxes all edges, with candidate distance hops + 1.
//
// There are no levels: a distance may propagate further within the round that improved it. After
// r rounds all distances up to r are final; others may still fall. This needs an atomic minimum. The
// paper's plain store may overwrite a smaller number by a larger one. Later rounds correct that, but
// then no round number says which distances are settled. Predecessors follow from the distances, so
// they are determined once, at the end.
//
//   threads   see kt/advance.cuh
//   reads     all edges, the distances of their ends    writes   distances that fall
//
// Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, sections 3 and 4.1 (figures 9 and 16).
#include <kt/advance.cuh>

#include "advances.cuh"

namespace {

// Unsigned, so that UNREACHED is larger than all.
KT_DEVICE uint32 hops_of(const int32* distance, vertex_t v) { return static_cast<uint32>(kt::racy_load(distance + v)); }

struct Relax {
  int32* distance;
  int64* counters;

  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    // Distances only fall: an old one gives a candidate that is too large, and the thread that improved it has
    // requested another round.
    const uint32 hops = hops_of(distance, u);
    if (hops == static_cast<uint32>(kt::UNREACHED) || hops + 1 >= hops_of(distance, v)) return;
    kt::atomic_min(reinterpret_cast<uint32*>(distance + v), hops + 1);
    kt::racy_store(counters, int64{1});
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_relax_thread(const offset_t* offsets, const vertex_t* targets, int64 n_vertices, int32* distance,
                     int64* counters) {
  kt::edges_by_thread({offsets, targets}, kt::Range{0, n_vertices}, Relax{distance, counters});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_relax_edges(const vertex_t* sources, const vertex_t* targets, int64 n_edges, int32* distance, int64* counters) {
  kt::edges_by_edge(sources, targets, n_edges, Relax{distance, counters});
}

// The smallest predecessor that explains each distance. Warp-mapped for all strategies that need it, so that it costs
// the same in each of them.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_find_predecessors_warp(const offset_t* offsets, const vertex_t* targets, int64 n_vertices,
                               const int32* distance, vertex_t* predecessor) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t, vertex_t v) {
    const int32 hops = kt::load_constant(distance + u);
    if (hops != kt::UNREACHED && kt::load_constant(distance + v) == hops + 1) kt::keep_smallest(predecessor + v, u);
  });
}

// The source of each edge, at the index of its target: the graph as an edge list.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_list_sources_warp(const offset_t* offsets, const vertex_t* targets, int64 n_vertices, vertex_t* sources) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices},
                    [=](vertex_t u, offset_t e, vertex_t) { sources[e] = u; });
}

// The graph with vertex u renamed to rank[u]. `renamed_offsets` are the offsets of the renamed graph.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_rename_warp(const offset_t* offsets, const vertex_t* targets, const vertex_t* rank,
                    const offset_t* renamed_offsets, int64 n_vertices, vertex_t* renamed) {
  kt::edges_by_warp({offsets, targets}, kt::Range{0, n_vertices}, [=](vertex_t u, offset_t e, vertex_t v) {
    const offset_t begin = kt::load_constant(renamed_offsets + kt::load_constant(rank + u));
    renamed[begin + e - kt::load_constant(offsets + u)] = kt::load_constant(rank + v);
  });
}
