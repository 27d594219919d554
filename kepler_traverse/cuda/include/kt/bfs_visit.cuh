// Visits the head of an edge from the frontier: sets its distance and predecessor.
//
// All edges that leave the frontier are visited, so a vertex of this level ends with its smallest
// predecessor, whatever the order of threads. A distance that is out of date can only be UNREACHED.
// The compare-and-swap then returns the current one.
//
// A claim is a compare-and-swap: it succeeds for exactly one edge per vertex.
#pragma once

#include <kt/csr.cuh>

namespace kt {

struct Reach {
  int32 level;  // of the vertices that are discovered
  int32* distance;
  vertex_t* predecessor;  // null: not computed

  // Returns whether this edge discovers v: true for one edge per vertex.
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

  // The same with plain stores. Threads that visit a vertex at the same time store the same distance, and all of them
  // get true, so the caller may queue the vertex more than once.
  KT_DEVICE bool visit(vertex_t u, vertex_t v) const {
    const int32 hops = racy_load(distance + v);
    const bool discovered = hops == UNREACHED;
    if (discovered) racy_store(distance + v, level);
    if (predecessor && (discovered || hops == level)) keep_smallest(predecessor + v, u);
    return discovered;
  }
};

}  // namespace kt
