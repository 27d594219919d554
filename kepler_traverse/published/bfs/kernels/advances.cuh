// Advances of the published systems, beside those of kt/advance.cuh.
//
//   edges_by_edge            one thread per edge of the graph, which is given as pairs of source and target
//   edges_of_lanes_in_turn   a warp visits the adjacency lists that its lanes hold, one after the other
//   edges_by_shared_reads    the same, for vertices whose offsets the warp reads at once
//   edges_of_block           the degree decides which threads of a block visit a list that one of them holds
//
// Jia et al. GPU Computing Gems, 2011 (edge parallelism). Busato, Bombieri. BFS-4K. IEEE TPDS 2015, section 5.6
// (coalesced reads). Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012.
#pragma once

#include <kt/advance.cuh>

namespace kt {

// Calls visit(u, edge, v), as edges_by_thread does.
template <typename Visit>
KT_DEVICE void edges_by_edge(const vertex_t* sources, const vertex_t* targets, offset_t n_edges, Visit visit) {
  for (offset_t e = thread_id(); e < n_edges; e += n_threads())
    visit(load_constant(sources + e), e, load_constant(targets + e));
}

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

// All threads of the block call it, with four words of shared memory in `handed_over`. `block_from` is at least 1.
//
//   block_from edges or more   the threads compete, and the block visits the list of the one that wins
//   warp_from edges or more    a warp visits the list
//   fewer edges                the lanes of the warp find their edges by binary search
template <typename Visit>
KT_DEVICE void edges_of_block(const vertex_t* targets, AdjacencyList mine, offset_t block_from, offset_t warp_from,
                              offset_t* handed_over, Visit&& visit) {
  while (true) {
    const bool is_long = mine.end - mine.begin >= block_from;
    // Any of the competing threads may win. An exchange, since plain stores to one word of shared memory are a race.
    if (is_long) atomic_exchange(handed_over, static_cast<offset_t>(thread_in_block()));
    if (!block_any(is_long)) break;
    if (is_long && *handed_over == thread_in_block()) {
      handed_over[1] = mine.u;
      handed_over[2] = mine.begin;
      handed_over[3] = mine.end;
      mine = AdjacencyList{};
    }
    block_barrier();
    const AdjacencyList list = {static_cast<vertex_t>(handed_over[1]), handed_over[2], handed_over[3]};
    edges_of_list(targets, one_block(), list, visit);
  }
  const bool is_for_warp = mine.end - mine.begin >= warp_from;
  edges_of_lanes_in_turn(targets, is_for_warp ? mine : AdjacencyList{}, visit);
  edges_of_lanes(targets, is_for_warp ? AdjacencyList{} : mine, false, visit);
}

}  // namespace kt
