// What an edge from the frontier does to the vertex at its end: distance and predecessor.
//
// Each edge of a level comes, finds the vertex unreached or at this level, and the smallest
// predecessor stays, whoever was first. Old is UNREACHED only: where a thread sees that
// though another was faster, it takes the vertex for unreached and no more.
//
//   claim   a compare-and-swap: exactly one edge is told that it reached the vertex
//   mark    a plain store: all edges that come at the same time are
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

// The vertices of one level out of the distances: each of them once.
KT_DEVICE void list_level(const int32* distance, int64 n_vertices, int32 level, Appender queue) {
  for (int64 v = thread_id(); v < n_vertices; v += n_threads())
    if (load_constant(distance + v) == level) queue.append(static_cast<vertex_t>(v));
}

}  // namespace kt
