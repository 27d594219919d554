// The k nearest sources of each vertex: one round of a search from all sources with k labels per vertex.
//
// A label is a distance and the position of its source. The labels of a vertex ascend by distance, then by source, and
// are of different sources; a source of -1 is no label. A round merges the labels that in-neighbors had before the
// round into those of each vertex. It reads one set of labels and writes another, so the order of the threads does not
// matter. Rounds end when no label changes; the labels are then the k nearest sources
// (kepler_traverse/kinds/k_nearest_gpu.py).
//
//   k_nearest_merge   one thread per vertex
//
// A vertex whose labels did not change in the last round has the same ones in both sets. So only changed labels are
// copied, and only labels of in-neighbors that changed are merged.
//
// Reads:  the reverse graph, a byte per edge, and the labels of in-neighbors that changed.   Writes: labels that
// change.
#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>

// What the host passes (kinds/k_nearest_gpu.py).
struct MergeArgs {
  const offset_t* offsets;  // of the reverse graph
  const vertex_t* neighbors;
  KT_NULLABLE const int64* weights;  // of its edges; 1 without weights
  int64 n_vertices;
  int64 k;
  int64 limit;            // larger distances are left out
  const int64* distance;  // [n_vertices][k]
  const int32* source;
  const uint8* changed;
  int64* new_distance;
  int32* new_source;
  uint8* new_changed;
  int64* n_changed;
};

namespace {

// The labels of one vertex, which one thread changes.
struct Labels {
  int64* distance;
  int32* source;
  int64 k;

  KT_DEVICE bool is_before(int64 d, int32 s, int64 i) const {
    return source[i] < 0 || d < distance[i] || (d == distance[i] && s < source[i]);
  }
  KT_DEVICE bool has_room_for(int64 d, int32 s) const { return is_before(d, s, k - 1); }

  // Returns whether the label is new, or nearer than that of its source.
  KT_DEVICE bool insert(int64 d, int32 s) const {
    // The old label of this source, or the last place, is overwritten: those between move down.
    int64 at = 0;
    while (at < k - 1 && source[at] >= 0 && source[at] != s) ++at;
    if (source[at] == s && distance[at] <= d) return false;
    for (; at > 0 && is_before(d, s, at - 1); --at) {
      distance[at] = distance[at - 1];
      source[at] = source[at - 1];
    }
    distance[at] = d;
    source[at] = s;
    return true;
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) k_nearest_merge(const MergeArgs args) {
  for (int64 v = kt::thread_id(); v < args.n_vertices; v += kt::n_threads()) {
    // The set that is written has the labels of two rounds ago, which are the same unless they changed.
    const Labels mine = {args.new_distance + v * args.k, args.new_source + v * args.k, args.k};
    if (kt::load_constant(args.changed + v)) {
      for (int64 i = 0; i < args.k; ++i) {
        mine.distance[i] = kt::load_constant(args.distance + v * args.k + i);
        mine.source[i] = kt::load_constant(args.source + v * args.k + i);
      }
    }

    // Labels of a neighbor ascend: the first one that has no place ends its list.
    bool has_changed = false;
    const auto merge = [&](vertex_t, offset_t e, vertex_t u) {
      if (!kt::load_constant(args.changed + u)) return;
      const int64 weight = args.weights ? kt::load_constant(args.weights + e) : 1;
      for (int64 i = int64{u} * args.k; i < (int64{u} + 1) * args.k; ++i) {
        const int32 source = kt::load_constant(args.source + i);
        if (source < 0) return;
        const int64 distance = kt::load_constant(args.distance + i) + weight;
        if (distance > args.limit || !mine.has_room_for(distance, source)) return;
        if (mine.insert(distance, source)) has_changed = true;
      }
    };

    kt::edges_of_thread(args.neighbors, kt::adjacency_list(args.offsets, static_cast<vertex_t>(v)), merge);
    args.new_changed[v] = has_changed ? 1 : 0;
    if (has_changed) kt::count(args.n_changed);
  }
}
