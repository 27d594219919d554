// Edge-mapped advance: one thread per edge of the graph, which is given as pairs of source and target.
//
// Jia et al. GPU Computing Gems, 2011 (edge parallelism).
#pragma once

#include <kt/csr.cuh>

namespace kt {

// Calls visit(u, edge, v), as edges_by_thread does.
template <typename Visit>
KT_DEVICE void edges_by_edge(const vertex_t* sources, const vertex_t* targets, offset_t n_edges, Visit visit) {
  for (offset_t e = thread_id(); e < n_edges; e += n_threads())
    visit(load_constant(sources + e), e, load_constant(targets + e));
}

}  // namespace kt
