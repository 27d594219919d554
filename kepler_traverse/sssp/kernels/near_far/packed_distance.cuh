// Labels: the distance and, with PREDECESSORS, the predecessor of a vertex, in one word.
// Weights are non-negative.
//
// Compile-time constant PREDECESSORS:
//   0   a label is the distance found so far, as an ordered integer (float_order.cuh)
//   1   a label has 64 bits: the distance in the upper half, the predecessor in the lower. One
//       atomic minimum updates both, and keeps the smallest predecessor among equal distances
//
// The candidate distance over an edge (u, v) of weight w is d + w, where d is the distance of u
// as it was read. Its label names u as the predecessor if d < d + w. If the sum equals d, because
// the weight is zero or rounding absorbs it, the label holds NO_PREDECESSOR, which is larger than
// all vertices. Let D be the final distances. Then:
//
//   An edge (u, v) whose candidate was D(v) is tight, even if d was not final then. d >= D(u) and
//   rounding is monotonic, so D(v) <= D(u) + w <= d + w == D(v). If the label names u, then
//   D(u) <= d < D(v).
//   For every u with D(u) + w == D(v) and D(u) < D(v) there is a candidate that names u: the edges
//   of u are relaxed after its last improvement, from D(u). The minimum keeps that label unless it
//   has a smaller one of the same distance, which names a smaller vertex.
//
// So the final label of v holds D(v) and the smallest of its tight in-neighbors that are strictly
// nearer to the source. If all tight in-neighbors are at the distance D(v) themselves, it holds D(v)
// and NO_PREDECESSOR. The last pass counts such vertices, and predecessors.cu resolves them. No
// candidate changes the label of the source: a candidate of distance zero has NO_PREDECESSOR, so it
// is larger than that label.
#pragma once

#include <kt/csr.cuh>
#include <kt/float_order.cuh>

namespace kt {

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

// Initializes the labels for a search. All threads of the grid call it.
KT_DEVICE void begin_labels(label_t* labels, int64 n_vertices, vertex_t source) {
  for (int64 v = thread_id(); v < n_vertices; v += n_threads())
    labels[v] = v == source ? label_of(0, source) : no_label();
}

// Unpacks labels into distances, as keys, and predecessors. Vertices beyond `limit_key` become
// unreached. With `clears` it also initializes the labels for the next search. Reads 8 bytes per
// vertex and writes 8, or 16 with `clears`. Returns the number of this thread's reached vertices
// without a predecessor.
KT_DEVICE int32 unpack_labels(label_t* labels, int64 n_vertices, ordered_t limit_key, bool clears, ordered_t* keys,
                              vertex_t* predecessor) {
  int32 n_open = 0;
  for (int64 v = thread_id(); v < n_vertices; v += n_threads()) {
    const ordered_t key = key_in(labels[v]);
    const label_t label = key <= limit_key && key < INFINITE ? labels[v] : no_label();
    keys[v] = key_in(label);
    predecessor[v] = predecessor_in(label);
    n_open += predecessor_in(label) == NO_PREDECESSOR && key_in(label) < INFINITE;
    if (clears) labels[v] = no_label();
  }
  return n_open;
}

}  // namespace kt
