// Visits the head of an edge with plain stores.
#pragma once

#include <kt/bfs_visit.cuh>

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

}  // namespace kt
