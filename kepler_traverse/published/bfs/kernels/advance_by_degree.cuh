// Visits the adjacency lists that the threads of a block hold. The degree decides which threads visit a list.
//
// Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012.
#pragma once

#include <kt/advance.cuh>

#include "advance_in_turn.cuh"

namespace kt {

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
