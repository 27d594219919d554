// Relaxing an edge (u, v): the distance of v becomes the candidate distance through u if that is
// smaller. ordered_ts are ordered integers (float_order.cuh), so relaxing is one atomic minimum, and
// any order of events ends at the same distances.
#pragma once

#include <kt/csr.cuh>
#include <kt/float_order.cuh>

namespace kt {

struct Relaxing {
  const weight_t* weights;
  ordered_t limit;  // candidates beyond it are rejected
  ordered_t* keys;
  vertex_t* parent;  // null unless negative cycles are searched for

  // Returns whether v improved; `before` is then its previous distance. `src_distance` is the distance of u as it was
  // read. If that is old, u has improved and its edges are relaxed again.
  KT_DEVICE bool relax(vertex_t u, ordered_t src_distance, offset_t e, vertex_t v, ordered_t& key,
                       ordered_t& before) const {
    key = to_ordered(add_rounded(from_ordered<weight_t>(src_distance), load_constant(weights + e)));
    // ordered_ts only fall: an old one lets a candidate through that the atomic then rejects.
    if (key > limit || key >= racy_load(keys + v)) return false;
    before = atomic_min(keys + v, key);
    if (before <= key) return false;
    // May race with another improvement of v: only the search for cycles reads it, and checks what it finds.
    if (parent) racy_store(parent + v, u);
    return true;
  }
  KT_DEVICE bool relax(vertex_t u, ordered_t src_distance, offset_t e, vertex_t v) const {
    ordered_t key, before;
    return relax(u, src_distance, e, v, key, before);
  }
};

}  // namespace kt
