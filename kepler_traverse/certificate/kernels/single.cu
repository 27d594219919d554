// Certificate of one search: one pass over the edges and one over the vertices. A correct result
// passes both without a finding.
//
// Edges: counts edges over which a shorter distance is possible (C3), with the smallest vertex that
// such an edge leads to. Sets explained[v] if the edge from v's predecessor gives exactly v's
// distance. No two threads set the same explained[v], since a graph has each edge once.
// Vertices, each alone: counts those that are their own predecessor (C1), are out of range (C2), are
// not explained (C4), or are no farther than their predecessor (then the host must check C5).
// No edge is looked up by a predecessor, so a predecessor out of range does no harm.
//
//   counts    see Count; a place is the smallest vertex with the finding
//   threads   edges: a warp takes 32 adjacency lists; lists of CHUNK edges or more are visited in
//             chunks. Vertices: one thread per vertex
//
// Reads:  per edge, 4 bytes of targets (and its weight) and a sector with the distance of its head; on
//         an exact match also a sector with the predecessor of its head. Per vertex, 8 bytes of
//         offsets, the distance twice, the predecessor, and one byte of `explained`.
// Writes: counts; one byte of `explained` per explained vertex.
#include <kt/float_order.cuh>

#include "certificate_tiles.cuh"

namespace {

enum Count { ROOTS, BAD, BAD_AT, REACHED, VIOLATED, VIOLATED_AT, UNEXPLAINED, UNEXPLAINED_AT, LEVEL };

// Counts a finding at a vertex; the count after it holds the smallest such vertex.
KT_DEVICE void add_finding(int64* counts, Count what, int64 v) {
  kt::count(counts + what);
  kt::atomic_min(counts + what + 1, v);
}

// Visits the edges of all adjacency lists, short and long; visit is called as by the functions of kt/advance.cuh.
template <typename Visit>
KT_DEVICE void all_edges(kt::Csr graph, int64 n_vertices, const kt::Hubs& hubs, Visit visit) {
  for (int64 i = kt::warp_id(); i < kt::load_constant(hubs.counts + 1); i += kt::n_warps())
    kt::edges_of_list(graph.targets, {0, 1}, hubs.chunk(graph.offsets, i), visit);
  const auto light = [&](int64 i, bool) {
    const kt::AdjacencyList list = kt::adjacency_list(graph.offsets, static_cast<vertex_t>(i));
    return list.end - list.begin < CHUNK ? list : kt::AdjacencyList{};
  };
  kt::edges_by_discovery(graph.targets, kt::whole_grid(), n_vertices, true, light, visit);
}

// Checks each vertex alone and counts findings.
struct VertexChecks {
  int64 n_vertices;
  const vertex_t* predecessor;
  const uint8* explained;
  int64 source;
  int64* counts;
  int64 reached = 0;

  // `is_sound`: whether the distance of v is a value that a search may give. is_level(p): whether p is no nearer than
  // v.
  template <typename IsLevel>
  KT_DEVICE void add(int64 v, bool is_reached, bool is_sound, IsLevel is_level) {
    const vertex_t p = kt::load_constant(predecessor + v);
    const bool is_vertex = p >= 0 && p < n_vertices;
    if (p == v) kt::count(counts + ROOTS);
    // Reached vertices have a vertex as their predecessor, and others none.
    const bool is_right = is_reached ? is_vertex : p == kt::NO_PREDECESSOR;
    if (!is_sound || !is_right) add_finding(counts, BAD, v);
    reached += is_reached;

    if (v == source || p == kt::NO_PREDECESSOR) return;
    if (!kt::load_constant(explained + v)) add_finding(counts, UNEXPLAINED, v);
    if (is_vertex && is_level(p)) kt::count(counts + LEVEL);
  }
  KT_DEVICE void report() {
    reached = kt::sum_of_all(reached);
    if (kt::lane() == 0 && reached) kt::atomic_add(counts + REACHED, reached);
  }
};

}  // namespace

// What the host passes (certificate/single_gpu.py), here and below.
template <typename distance_t>
struct EdgeArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const weight_t* weights;
  int64 n_vertices;
  const vertex_t* hubs;
  const uint64* chunks;
  const int64* n_hubs;
  const distance_t* distance;
  const vertex_t* predecessor;
  distance_t limit;  // up to where the distances are complete
  uint8* explained;
  int64* counts;
};

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_check_hops_warp(const EdgeArgs<int32> args) {
  const auto visit = [&](bool valid, vertex_t u, offset_t, vertex_t v) {
    const int32 here = valid ? kt::load_constant(args.distance + u) : kt::UNREACHED;
    if (here == kt::UNREACHED || here == 0x7fffffff) return;
    const int32 hops = here + 1;
    const int32 there = kt::load_constant(args.distance + v);
    if (hops <= args.limit && (there == kt::UNREACHED || there > hops)) add_finding(args.counts, VIOLATED, v);
    if (there == hops && kt::load_constant(args.predecessor + v) == u) args.explained[v] = 1;
  };
  all_edges({args.offsets, args.targets}, args.n_vertices, kt::Hubs{args.hubs, args.chunks, args.n_hubs}, visit);
}

template <typename distance_t>
struct VertexArgs {
  const distance_t* distance;
  const vertex_t* predecessor;
  const uint8* explained;
  int64 n_vertices;
  int64 source;
  distance_t limit;
  int32 is_negative;  // whether there is a weight below 0
  int64* counts;
};

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_look_at_hops(const VertexArgs<int32> args) {
  VertexChecks checks{args.n_vertices, args.predecessor, args.explained, args.source, args.counts};
  for (int64 v = kt::thread_id(); v < args.n_vertices; v += kt::n_threads()) {
    const int32 d = kt::load_constant(args.distance + v);
    checks.add(v, d != kt::UNREACHED, d >= kt::UNREACHED && d <= args.limit, [](vertex_t) { return false; });
  }
  checks.report();
}

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_check_weighted_warp(const EdgeArgs<weight_t> args) {
  const ordered_t limit_key = kt::to_ordered(args.limit);
  const auto visit = [&](bool valid, vertex_t u, offset_t e, vertex_t v) {
    if (!valid) return;
    const weight_t here = kt::load_constant(args.distance + u);
    if (kt::to_ordered(here) == kt::INFINITE) return;
    const ordered_t there = kt::to_ordered(kt::load_constant(args.distance + v));
    const ordered_t through = kt::to_ordered(kt::add_rounded(here, kt::load_constant(args.weights + e)));
    if (through <= limit_key && there > through) add_finding(args.counts, VIOLATED, v);
    if (there == through && kt::load_constant(args.predecessor + v) == u) args.explained[v] = 1;
  };
  all_edges({args.offsets, args.targets}, args.n_vertices, kt::Hubs{args.hubs, args.chunks, args.n_hubs}, visit);
}

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_look_at_weighted(const VertexArgs<weight_t> args) {
  const ordered_t limit_key = kt::to_ordered(args.limit);
  VertexChecks checks{args.n_vertices, args.predecessor, args.explained, args.source, args.counts};
  for (int64 v = kt::thread_id(); v < args.n_vertices; v += kt::n_threads()) {
    const ordered_t d = kt::to_ordered(kt::load_constant(args.distance + v));
    // No sum of weights is -0.0, the largest of the negative keys; NaN lies beyond both infinities.
    const bool is_sound =
        d == kt::INFINITE || (d <= limit_key && (d >= 0 || (args.is_negative && d < -1 && d > ~kt::INFINITE)));
    checks.add(v, d != kt::INFINITE, is_sound,
               [&](vertex_t p) { return kt::to_ordered(kt::load_constant(args.distance + p)) >= d; });
  }
  checks.report();
}
