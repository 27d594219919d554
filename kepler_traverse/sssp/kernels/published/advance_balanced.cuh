// The edges of a list of vertices in equal shares, whatever their degrees: each warp gets as
// many edges as any other, one row in pieces or many rows at once. The edges themselves are
// walked by edges_of_lanes (advance.cuh).
//
// `ends` holds the prefix sums of the row lengths, each with its own row. A warp finds the
// row where its share begins by a binary search, as along a merge path (Odeh, Green, Mwassi,
// Shmueli, Birk. IPDPSW 2012), but that rows count for nothing, only their edges.
#pragma once

#include <kt/advance.cuh>

namespace kt {

// The first of n rows that ends beyond `edge`.
KT_DEVICE int64 row_past(const offset_t* ends, int64 n, offset_t edge) {
  int64 low = 0;
  for (int64 high = n - 1; low < high;) {
    const int64 middle = low + (high - low) / 2;
    if (load_constant(ends + middle) > edge)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// All lanes come, and call visit(valid, u, edge, v), as in advance.cuh.
template <typename Rows, typename Visit>
KT_DEVICE void edges_balanced(const vertex_t* targets, Team team, int64 n, const offset_t* ends, Rows rows,
                              Visit&& visit) {
  const offset_t total = n ? load_constant(ends + n - 1) : 0;
  const offset_t share = (total / team.n_warps / WARP + 1) * WARP;  // whole trips of a warp
  const offset_t begin = team.warp * share;
  const offset_t end = begin + share < total ? begin + share : total;
  if (begin >= end) return;
  const auto start_of = [=](int64 i) { return i ? load_constant(ends + i - 1) : static_cast<offset_t>(0); };
  for (int64 first = row_past(ends, n, begin); first < n && start_of(first) < end; first += WARP) {
    const int64 i = first + lane();
    AdjacencyList mine = {};
    if (i < n) {
      mine = rows(i, true);
      const offset_t start = start_of(i), row_begin = mine.begin;
      if (start + (mine.end - row_begin) > end) mine.end = start < end ? row_begin + (end - start) : row_begin;
      if (start < begin) mine.begin = row_begin + (begin - start);
    }
    edges_of_lanes(targets, mine, true, visit);
  }
}

}  // namespace kt
