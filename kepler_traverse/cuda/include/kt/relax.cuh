// Relaxing an edge (u, v): v is offered a path through u, and its distance falls to that
// or stays. Distances are ordered integers (float_order.cuh), so an offer is one atomic minimum,
// and any order of offers ends at the same distances.
#pragma once

#include <kt/csr.cuh>
#include <kt/float_order.cuh>

namespace kt {

struct Relaxing {
  using Distance = key_of<weight_t>;

  const weight_t* weights;
  Distance farthest;  // offers beyond it are refused
  Distance* keys;
  vertex_t* parent;  // null where nobody looks for negative cycles

  // Whether v fell; `before` is then what it fell from. `nearer` is the distance of u as it was read: if that is old,
  // u is relaxed again for having fallen.
  KT_DEVICE bool relax(vertex_t u, Distance src_distance, offset_t e, vertex_t v, Distance& key,
                       Distance& before) const {
    key = to_ordered(add_rounded(from_ordered<weight_t>(src_distance), load_constant(weights + e)));
    // Distances only fall: an old one lets an offer through that the atomic then refuses.
    if (key > farthest || key >= racy_load(keys + v)) return false;
    before = atomic_min(keys + v, key);
    if (before <= key) return false;
    // May race with another lowering of v: only the search for cycles reads it, and checks what it finds.
    if (parent) racy_store(parent + v, u);
    return true;
  }
  KT_DEVICE bool relax(vertex_t u, Distance src_distance, offset_t e, vertex_t v) const {
    Distance key, before;
    return relax(u, src_distance, e, v, key, before);
  }
};

}  // namespace kt
