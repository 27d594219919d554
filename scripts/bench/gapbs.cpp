// Functions for Python around the searches of the GAP Benchmark Suite, whose sources are in the
// folder of the compiler's include path. Built by scripts/bench/libraries.py.

#include <cinttypes>
#include <cstdint>
#include <iostream>
#include <limits>
#include <queue>
#include <vector>

// Both files have a program and names of their own, which namespaces separate. So what they
// include is included before.
#include "benchmark.h"
#include "bitmap.h"
#include "builder.h"
#include "command_line.h"
#include "graph.h"
#include "platform_atomics.h"
#include "pvector.h"
#include "sliding_queue.h"
#include "timer.h"
namespace hops {
#include "bfs.cc"
}
namespace weights {
#include "sssp.cc"
}

namespace {

template <typename T>
T **index_of(int64_t n, const int64_t *offsets, T *neighbors) {
    T **index = new T *[n + 1];
    for (int64_t v = 0; v <= n; ++v) index[v] = neighbors + offsets[v];
    return index;
}

}  // namespace

// Graphs are kept until the process ends. `in_offsets` is null for an undirected graph.
extern "C" Graph *make_graph(int64_t n, const int64_t *offsets, int32_t *targets,
                             const int64_t *in_offsets, int32_t *in_targets) {
    NodeID **out = index_of(n, offsets, targets);
    if (in_offsets == nullptr) return new Graph(n, out, targets);
    return new Graph(n, out, targets, index_of(n, in_offsets, in_targets), in_targets);
}

// `edges`: pairs of a target and a weight. Delta-stepping reads no edges in reverse.
extern "C" WGraph *make_weighted_graph(int64_t n, const int64_t *offsets, int32_t *edges) {
    WNode *neighbors = reinterpret_cast<WNode *>(edges);
    return new WGraph(n, index_of(n, offsets, neighbors), neighbors);
}

// The parents of a search stay in memory until the next one, which frees them before it begins.
extern "C" const int32_t *search_hops(const Graph *graph, int32_t source) {
    static pvector<NodeID> parents;
    parents = hops::DOBFS(*graph, source);
    return parents.data();
}

extern "C" const int32_t *search_weights(const WGraph *graph, int32_t source, int32_t delta) {
    static pvector<WeightT> distances;
    distances = weights::DeltaStep(*graph, source, delta);
    return distances.data();
}
