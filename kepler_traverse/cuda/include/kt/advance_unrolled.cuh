// Edges that a lane visits at once, so that N loads are in flight: the visitors of advance.cuh.
//
// A visitor of one edge per lane is called as visit(valid, u, edge, v). A visitor of N > 1 edges, or
// one that has no other form, is called as visit.unrolled(edges) and loads the targets itself.
#pragma once

#include <kt/csr.cuh>

namespace kt {

// Where an edge is not valid, u is still the number of a vertex.
template <int32 N>
struct Edges {
  bool valid[N];
  vertex_t u[N];
  offset_t e[N];
};

template <typename Visit>
KT_DEVICE void visit_edge(const vertex_t* targets, bool valid, vertex_t u, offset_t e, Visit& visit) {
  visit(valid, u, e, valid ? load_constant(targets + e) : u);
}

template <typename Visit>
KT_DEVICE auto visit_edges(const vertex_t* targets, const Edges<1>& edges, Visit& visit, int)
    -> decltype(visit(true, edges.u[0], edges.e[0], edges.u[0])) {
  return visit_edge(targets, edges.valid[0], edges.u[0], edges.e[0], visit);
}
template <int32 N, typename Visit>
KT_DEVICE void visit_edges(const vertex_t*, const Edges<N>& edges, Visit& visit, long) {
  visit.unrolled(edges);
}

}  // namespace kt
