// Visits the adjacency lists that the threads of a block hold. The degree decides which threads visit a list.
//
// Merrill, Garland, Grimshaw. Scalable GPU graph traversal. PPoPP 2012.
#pragma once

#include <kt/advance.cuh>

namespace kt {

// For a row of `block_from` edges or more the threads compete, and all of them take the winner's;
// one of `warp_from` or more a warp takes; in the rest lanes look for their edges. All threads
// of the block come, with four words of shared memory. `block_from` is 1 at least.
template <typename Visit>
KT_DEVICE void edges_of_block(const vertex_t* targets, AdjacencyList mine, offset_t block_from, offset_t warp_from,
                              offset_t* handed, Visit&& visit) {
  while (true) {
    const bool is_long = mine.end - mine.begin >= block_from;
    // Any of those that come may win. An exchange, since plain stores to one word are a race in shared memory.
    if (is_long) atomic_exchange(handed, static_cast<offset_t>(thread_in_block()));
    if (!block_any(is_long)) break;
    if (is_long && *handed == thread_in_block()) {
      handed[1] = mine.u;
      handed[2] = mine.begin;
      handed[3] = mine.end;
      mine = AdjacencyList{};
    }
    block_barrier();
    edges_of_list(targets, one_block(), AdjacencyList{static_cast<vertex_t>(handed[1]), handed[2], handed[3]}, visit);
  }
  const bool is_for_warp = mine.end - mine.begin >= warp_from;
  edges_of_lanes_in_turn(targets, is_for_warp ? mine : AdjacencyList{}, visit);
  edges_of_lanes(targets, is_for_warp ? AdjacencyList{} : mine, false, visit);
}

}  // namespace kt
