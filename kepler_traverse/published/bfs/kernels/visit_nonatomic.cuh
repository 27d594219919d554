// Visits the head of an edge with plain stores, and rebuilds a queue that overflowed with duplicates.
#pragma once

#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>

namespace kt {

// As Reach::claim, without the compare-and-swap. Threads that visit a vertex at the same time store the same distance,
// and all of them get true, so the caller may queue the vertex more than once.
KT_DEVICE bool visit_nonatomic(const Reach& reach, vertex_t u, vertex_t v) {
  const int32 hops = racy_load(reach.distance + v);
  const bool discovered = hops == UNREACHED;
  if (discovered) racy_store(reach.distance + v, reach.level);
  if (reach.predecessor && (discovered || hops == reach.level)) keep_smallest(reach.predecessor + v, u);
  return discovered;
}

// Queues the vertices of one level, each of them once, by a scan of the distances.
KT_DEVICE void list_level(const int32* distance, int64 n_vertices, int32 level, Appender queue) {
  for (int64 v = thread_id(); v < n_vertices; v += n_threads())
    if (load_constant(distance + v) == level) queue.append(static_cast<vertex_t>(v));
}

}  // namespace kt
