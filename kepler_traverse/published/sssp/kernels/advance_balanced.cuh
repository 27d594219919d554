// Edge-balanced advance: each warp visits the same number of edges, whatever the degrees. A warp may
// visit a slice of one adjacency list, or many lists. edges_of_lanes (kt/advance.cuh) visits the edges.
//
// `ends` holds the inclusive prefix sums of the degrees. A warp finds the list where its partition
// begins by binary search, as along a merge path (Odeh, Green, Mwassi, Shmueli, Birk. IPDPSW 2012).
// Unlike there, only edges are balanced, and lists without edges cost nothing.
#pragma once

#include <kt/advance.cuh>

namespace kt {

// All lanes call visit(valid, u, edge, v), as in kt/advance.cuh.
template <typename Lists, typename Visit>
KT_DEVICE void edges_balanced(const vertex_t* targets, Team team, int64 n, const offset_t* ends, Lists lists,
                              Visit&& visit) {
  const offset_t total = n ? load_constant(ends + n - 1) : 0;
  const offset_t partition =
      (total / team.n_warps / WARP + 1) * WARP;  // a multiple of the edges that a warp visits at once
  const offset_t begin = team.warp * partition;
  const offset_t end = begin + partition < total ? begin + partition : total;
  if (begin >= end) return;
  const auto start_of = [=](int64 i) { return i ? load_constant(ends + i - 1) : static_cast<offset_t>(0); };
  const auto ends_after = [=](int64 i) { return load_constant(ends + i) > begin; };
  for (int64 first = first_where(0, n - 1, ends_after); first < n && start_of(first) < end; first += WARP) {
    const int64 i = first + lane();
    AdjacencyList mine = {};
    if (i < n) {
      mine = lists(i, true);
      const offset_t start = start_of(i), list_begin = mine.begin;
      if (start + (mine.end - list_begin) > end) mine.end = start < end ? list_begin + (end - start) : list_begin;
      if (start < begin) mine.begin = list_begin + (begin - start);
    }
    edges_of_lanes(targets, mine, true, visit);
  }
}

}  // namespace kt
