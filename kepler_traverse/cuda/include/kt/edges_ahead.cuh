// Loops of edges.cuh for visitors that take N edges a lane at once, visit.ahead(edges), so that
// N loads are on their way together.
//
//   edges_by_virtual_warp_ahead   2^k lanes take a vertex
//   edges_by_discovery_ahead      a warp takes 32 rows and gives each lane edges
//   edges_of_row_ahead            all threads of a grid or a block take one row
#pragma once

#include <kt/edges.cuh>

namespace kt {

// Edges of a lane that are visited at once; where one is not valid, u is a vertex all the same.
template <int32 N>
struct Edges {
  bool valid[N];
  vertex_t u[N];
  offset_t e[N];
};

template <int32 N, typename Visit>
KT_DEVICE void edges_of_lanes_ahead(Row mine, Visit& visit) {
  const offset_t through = sum_through(mine.end - mine.begin);
  const offset_t shift = mine.end - through;
  const offset_t total = broadcast(ALL_LANES, through, WARP - 1);
  for (offset_t at = 0; at < total; at += N * WARP) {
    Edges<N> edges = {};
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      const offset_t k = at + i * WARP + lane();
      if (at + i * WARP >= total) continue;  // for all lanes
      const int32 owner = lane_past(through, k);
      edges.valid[i] = k < total;
      edges.u[i] = broadcast(ALL_LANES, mine.u, owner);
      edges.e[i] = broadcast(ALL_LANES, shift, owner) + k;
    }
    visit.ahead(edges);
  }
}

template <int32 N, typename Rows, typename Visit>
KT_DEVICE void edges_by_discovery_ahead(Team team, int64 n, Rows rows, Visit& visit, int32 at_once) {
  for (int64 first = team.warp * at_once; first < n; first += team.n_warps * at_once) {
    const bool holds_one = lane() < at_once && first + lane() < n;
    edges_of_lanes_ahead<N>(holds_one ? rows(first + lane(), true) : Row{}, visit);
  }
}

template <int32 N, typename Visit>
KT_DEVICE void edges_of_row_ahead(Team team, Row row, Visit& visit) {
  for (offset_t first = row.begin + team.warp * WARP * N; first < row.end; first += team.n_warps * WARP * N) {
    Edges<N> edges;
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      edges.e[i] = first + i * WARP + lane();
      edges.valid[i] = edges.e[i] < row.end;
      edges.u[i] = row.u;
    }
    visit.ahead(edges);
  }
}

template <int32 N, typename Rows, typename Visit>
KT_DEVICE void edges_by_virtual_warp_ahead(Team team, int64 n, int32 width, Rows rows, Visit& visit) {
  const int32 shift = first_lane(static_cast<uint32>(width));
  const int32 rows_at_once = WARP >> shift;
  const int32 in_group = lane() & (width - 1);
  for (int64 first = team.warp * rows_at_once; first < n; first += team.n_warps * rows_at_once) {
    const int64 i = first + (lane() >> shift);
    const Row row = i < n ? rows(i, in_group == 0) : Row{};
    for (offset_t at = row.begin + in_group; any(ALL_LANES, at < row.end); at += N * width) {
      Edges<N> edges;
#pragma unroll
      for (int32 k = 0; k < N; ++k) {
        edges.e[k] = at + k * width;
        edges.valid[k] = edges.e[k] < row.end;
        edges.u[k] = row.u;
      }
      visit.ahead(edges);
    }
  }
}

}  // namespace kt
