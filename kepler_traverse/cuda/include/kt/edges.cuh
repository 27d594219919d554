// Who walks which edges. These are the only loops over edges.
//
// Each function calls visit(u, edge, v) once for every edge (u, v) that leaves
// the vertices of a list: a Queue of them, or a Range of numbers. Threads come in
// any order and, within a warp, may have diverged.
//
//   edges_by_thread   a thread takes a vertex    short rows
//   edges_by_warp     a warp takes a vertex      rows of about 32 edges and more
//
// Both stride over the list by the size of the grid, so that any grid is right.
#pragma once

#include <kt/csr.cuh>

namespace kt {

static_assert(BLOCK % WARP == 0, "a block is made of whole warps");

struct Queue {
  const vertex_t* vertices;
  int64 size;
  KT_DEVICE vertex_t operator[](int64 i) const { return load_constant(vertices + i); }
};

struct Range {
  int64 first;
  int64 size;
  KT_DEVICE vertex_t operator[](int64 i) const { return static_cast<vertex_t>(first + i); }
};

template <typename List, typename Visit>
KT_DEVICE void edges_by_thread(Csr graph, List list, Visit visit) {
  for (int64 i = thread_id(); i < list.size; i += n_threads()) {
    const vertex_t u = list[i];
    const offset_t end = load_constant(graph.offsets + u + 1);
    for (offset_t e = load_constant(graph.offsets + u); e < end; ++e) visit(u, e, load_constant(graph.targets + e));
  }
}

template <typename List, typename Visit>
KT_DEVICE void edges_by_warp(Csr graph, List list, Visit visit) {
  for (int64 i = warp_id(); i < list.size; i += n_warps()) {
    const vertex_t u = list[i];
    const offset_t end = load_constant(graph.offsets + u + 1);
    for (offset_t e = load_constant(graph.offsets + u) + lane(); e < end; e += WARP)
      visit(u, e, load_constant(graph.targets + e));
  }
}

}  // namespace kt
