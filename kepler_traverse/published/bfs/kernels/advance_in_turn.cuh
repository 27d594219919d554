// Warp-mapped advance over adjacency lists that the lanes of a warp hold.
//
// Busato, Bombieri. BFS-4K. IEEE TPDS 2015, section 5.6 (coalesced reads).
#pragma once

#include <kt/advance.cuh>

namespace kt {

// All lanes of the warp visit the adjacency lists of its lanes, one list after the other.
template <typename Visit>
KT_DEVICE void edges_of_lanes_in_turn(const vertex_t* targets, AdjacencyList mine, Visit&& visit) {
  for (uint32 left = ballot(ALL_LANES, mine.begin < mine.end); left; left &= left - 1) {
    const int32 owner = first_lane(left);
    const vertex_t u = broadcast(ALL_LANES, mine.u, owner);
    const offset_t end = broadcast(ALL_LANES, mine.end, owner);
    for (offset_t e = broadcast(ALL_LANES, mine.begin, owner) + lane(); any(ALL_LANES, e < end); e += WARP)
      visit_edge(targets, e < end, u, e, visit);
  }
}

// One warp per vertex. The warp reads the offsets of 32 vertices at a time, with coalesced loads.
template <typename Lists, typename Visit>
KT_DEVICE void edges_by_shared_reads(const vertex_t* targets, Team team, int64 n, Lists lists, Visit&& visit) {
  for (int64 first = team.warp * WARP; first < n; first += team.n_warps * WARP)
    edges_of_lanes_in_turn(targets, first + lane() < n ? lists(first + lane(), true) : AdjacencyList{}, visit);
}

}  // namespace kt
