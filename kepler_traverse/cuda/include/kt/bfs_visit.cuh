// Visits the head of an edge from the frontier: sets its distance and predecessor.
//
// Every edge of a level is visited and finds the vertex unreached or at this level. The smallest
// predecessor stays, in any order of events. An old distance can only be UNREACHED: a thread that
// reads it takes the vertex for unreached, which does no other harm.
//
// A claim is a compare-and-swap: it returns true for exactly one edge per vertex.
#pragma once

#include <kt/csr.cuh>

namespace kt {

struct Reach {
  int32 level;  // of what is reached
  int32* distance;
  vertex_t* predecessor;  // null: not wanted

  KT_DEVICE bool claim(vertex_t u, vertex_t v) const {
    int32 hops = racy_load(distance + v);
    bool discovered = false;
    if (hops == UNREACHED) {
      hops = compare_and_swap(distance + v, UNREACHED, level);
      discovered = hops == UNREACHED;
    }
    if (predecessor && (discovered || hops == level)) keep_smallest(predecessor + v, u);
    return discovered;
  }
};

}  // namespace kt
