// Visits the head of an edge from the frontier: sets its distance and predecessor.
//
// Every edge of a level is visited and finds the vertex unreached or at this level. The smallest
// predecessor stays, in any order of events. An old distance can only be UNREACHED: a thread that
// reads it takes the vertex for unreached, which does no other harm.
//
//   claim   compare-and-swap: returns true for exactly one edge per vertex
//   mark    plain store: returns true for all edges that visit the vertex at the same time
#pragma once

#include <kt/csr.cuh>
#include <kt/frontier_queue.cuh>

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

  KT_DEVICE bool mark(vertex_t u, vertex_t v) const {
    const int32 hops = racy_load(distance + v);
    const bool discovered = hops == UNREACHED;
    if (discovered) racy_store(distance + v, level);
    if (predecessor && (discovered || hops == level)) keep_smallest(predecessor + v, u);
    return discovered;
  }
};

// Queues the vertices of one level, each of them once, by a scan of the distances.
KT_DEVICE void list_level(const int32* distance, int64 n_vertices, int32 level, Appender queue) {
  for (int64 v = thread_id(); v < n_vertices; v += n_threads())
    if (load_constant(distance + v) == level) queue.append(static_cast<vertex_t>(v));
}

}  // namespace kt
