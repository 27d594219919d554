// Labels: what a vertex holds in a search for shortest paths of non-negative weights.
//
// Without PREDECESSORS, a constant that the compiler is given, that is the distance
// found so far, as an ordered integer (float_order.cuh). With them it is one word of 64
// bits, the distance above and the predecessor below, so that one atomic minimum
// decides both, and of equal distances the smallest predecessor stays.
//
// An offer over an edge (u, v) of weight w is d + w, d being the distance of u as it was
// read. It names u if d < d + w; if the sum is d itself - the weight is zero, or rounding
// absorbs it - it names NO_PREDECESSOR, which is larger than all. When the search is
// over, and D are the final distances:
//
//   Whoever offered D(v) lies on a tight edge, even if d was not final then: d >= D(u),
//   and rounding is monotonic, so D(v) <= D(u) + w <= d + w == D(v). And D(u) <= d < D(v)
//   if the offer names u.
//   Every u with D(u) + w == D(v) and D(u) < D(v) has offered that by name: after the
//   last fall of its distance it is relaxed again, from D(u), and the minimum takes the
//   offer unless a smaller one came, which can only name a smaller vertex.
//
// So the label of v ends as D(v) and the smallest of its tight in-neighbours that are
// strictly nearer; or without a name where only tight edges of no length lead to v, and
// those vertices, which the last pass counts, are left to predecessors.cu. No offer changes the
// source: one of no length is all that can come, and without a name it is the larger.
#pragma once

#include <kt/csr.cuh>
#include <kt/float_order.cuh>

namespace kt {

using ordered_t = key_of<weight_t>;
constexpr ordered_t INFINITE = Key<weight_t>::INFINITE;

template <bool HOLDS_PREDECESSORS>
struct LabelType {
  using type = ordered_t;
};
template <>
struct LabelType<true> {
  static_assert(!PREDECESSORS || sizeof(weight_t) + sizeof(vertex_t) == 8, "one word holds both");
  using type = uint64;
};
using label_t = LabelType<PREDECESSORS != 0>::type;

KT_DEVICE label_t label_of(ordered_t key, vertex_t u) {
  return PREDECESSORS ? static_cast<label_t>(static_cast<uint64>(key) << 32 | static_cast<uint32>(u))
                      : static_cast<label_t>(key);
}
KT_DEVICE ordered_t key_in(label_t label) {
  return static_cast<ordered_t>(PREDECESSORS ? static_cast<uint64>(label) >> 32 : static_cast<uint64>(label));
}
KT_DEVICE vertex_t predecessor_in(label_t label) {
  return static_cast<vertex_t>(static_cast<int32>(static_cast<uint64>(label) & 0xffffffffu));
}
KT_DEVICE label_t no_label() { return label_of(INFINITE, NO_PREDECESSOR); }

// Labels as they are when a search begins. All threads of the grid come.
KT_DEVICE void begin_labels(label_t* labels, int64 n_vertices, vertex_t source) {
  for (int64 v = thread_id(); v < n_vertices; v += n_threads())
    labels[v] = v == source ? label_of(0, source) : no_label();
}

// From labels to distances, as keys, and predecessors: 8 bytes per vertex read and 8
// written, and 8 more where `clears` leaves the labels as the next search wants them.
// Vertices beyond `farthest` become unreached. Gives how many of this thread's are
// reached and lack a predecessor.
KT_DEVICE int32 unpack_labels(label_t* labels, int64 n_vertices, ordered_t farthest, bool clears, ordered_t* keys,
                              vertex_t* predecessor) {
  int32 n_open = 0;
  for (int64 v = thread_id(); v < n_vertices; v += n_threads()) {
    const ordered_t key = key_in(labels[v]);
    const label_t label = key <= farthest && key < INFINITE ? labels[v] : no_label();
    keys[v] = key_in(label);
    predecessor[v] = predecessor_in(label);
    n_open += predecessor_in(label) == NO_PREDECESSOR && key_in(label) < INFINITE;
    if (clears) labels[v] = no_label();
  }
  return n_open;
}

}  // namespace kt
