// Flows: what passes through each vertex and edge if volumes take the paths of given predecessors.
//
// The predecessors of a source form a tree. The volume through a vertex is its own and that through its children. A
// thread begins at a leaf and walks toward the source. At each vertex it adds what it brings, and goes on if it is the
// last child to arrive. So each vertex is left once, by a thread that sees all of its volume. Sums are exact (see
// kt/exact_sum.cuh), so they have the same bits in any order.
//
//   flows_predecessors_warp   the smallest predecessor of each vertex, by distances from positive weights
//   flows_volumes_warp        adds the volumes at targets
//   flows_children            counts the children of each vertex
//   flows_gather              one thread per leaf walks toward the source
//   flows_add                 one thread per vertex and ROWS sources adds the volumes to the sums of vertices and edges
//
//   arrivals   children of a vertex in the lower half of a word, those that have arrived in the upper half
//
// Compile-time constants:
//   BLOCK       threads per block
//   ROWS        sources whose volumes a thread adds before it touches a sum that others add to
//   HOP_BYTES   bytes per hop count; 0 if distances are weighted, of type weight_t
//   INTEGERS    whether volumes are integers, without a decay
//   DECAY       0 none, 1 exponential, 2 linear, 3 gaussian
#include <kt/advance.cuh>
#include <kt/decay.cuh>
#include <kt/exact_sum.cuh>
#include <kt/tight_edges.cuh>

namespace {

using kt::Exact;
using kt::int32;
using kt::int64;
using kt::uint64;

constexpr uint64 ONE_ARRIVAL = 1ULL << 32;

}  // namespace

// What the host passes (kinds/flows_gpu.py).
struct PredecessorArgs {
  const offset_t* in_offsets;  // of the reverse graph
  const vertex_t* in_targets;
  KT_NULLABLE const weight_t* in_weights;
  int64 n_vertices;
  int64 n_rows;
  const kt::uint8* distance;
  int64 pitch;  // from the distances of one source to those of the next
  const int64* sources;
  vertex_t* predecessor;  // [n_rows][n_vertices]
  int64* without;         // vertices that are reached over edges that add nothing
};

struct VolumeArgs {
  KT_NULLABLE const int64* rows;  // of each pair, the row of its source; without them each source has all targets
  const int64* targets;           // of each pair, or of each source
  const int64* amounts;           // of each of them: an integer if INTEGERS, or the bits of a double
  const int64* factors;           // of each source, likewise
  int64 n_targets;
  int64 n_rows;
  int64 n_vertices;
  const kt::uint8* distance;
  int64 pitch;
  int64 limit;       // the largest distance that is served, in the order of distances
  double parameter;  // of the decay
  int32 exponent;    // of the unit of sums
  uint64* low;       // [n_rows][n_vertices]
  int64* high;
  uint64* lost_low;  // volumes without a path, and their number
  int64* lost_high;
};

struct TreeArgs {
  const vertex_t* predecessor;  // [n_rows][n_vertices]
  int64 n_vertices;
  int64 n_rows;
  uint64* arrivals;
  uint64* low;
  int64* high;
};

struct AddArgs {
  const offset_t* in_offsets;
  const vertex_t* in_targets;
  const vertex_t* predecessor;
  int64 n_vertices;
  int64 n_rows;
  const uint64* low;
  const int64* high;
  KT_NULLABLE uint64* vertex_low;
  KT_NULLABLE int64* vertex_high;
  KT_NULLABLE uint64* edge_low;  // of the edges of the reverse graph
  KT_NULLABLE int64* edge_high;
};

namespace {

KT_DEVICE Exact sum_of(Exact a, Exact b) {
  const uint64 low = a.low + b.low;
  return {low, static_cast<int64>(static_cast<uint64>(a.high) + static_cast<uint64>(b.high) + (low < a.low))};
}

KT_DEVICE bool is_nonzero(Exact a) { return (a.low | static_cast<uint64>(a.high)) != 0; }

// Of the very products of cpu/tree_flows.py.
KT_DEVICE Exact volume_of(const VolumeArgs& args, int64 amount, int64 factor, bool is_reached, double far) {
  if (INTEGERS) return {static_cast<uint64>(amount) * static_cast<uint64>(factor), 0};
  double volume = kt::float_of(amount) * kt::float_of(factor);
  if (DECAY != kt::NO_DECAY && is_reached) volume *= kt::Decay::weight_at(far, args.parameter);
  return kt::exact_of(volume, args.exponent, true);
}

// The edge from u to v, which there is, among those that lead to v. They ascend.
KT_DEVICE offset_t edge_of(const AddArgs& args, vertex_t u, vertex_t v) {
  offset_t low = kt::load_constant(args.in_offsets + v), high = kt::load_constant(args.in_offsets + v + 1);
  while (low < high) {
    const offset_t middle = low + (high - low) / 2;
    if (kt::load_constant(args.in_targets + middle) < u)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) flows_predecessors_warp(const PredecessorArgs args) {
  const int64 n = args.n_vertices, pieces = (n + kt::WARP - 1) / kt::WARP;
  for (int64 i = kt::warp_id(); i < args.n_rows * pieces; i += kt::n_warps()) {
    const int64 row = i / pieces, mine = i % pieces * kt::WARP + kt::lane();
    const kt::Distances distance = kt::distances_of(args.distance, args.pitch, row);
    vertex_t* const predecessor = args.predecessor + row * n;
    const vertex_t v = static_cast<vertex_t>(mine < n ? mine : 0);
    const bool is_source = mine == kt::load_constant(args.sources + row);
    const bool looks = mine < n && !is_source && kt::is_reached(distance[v]);
    if (mine < n) predecessor[mine] = is_source ? v : kt::NO_PREDECESSOR;
    kt::warp_barrier(kt::ALL_LANES);
    kt::edges_of_lanes(args.in_targets, looks ? kt::adjacency_list(args.in_offsets, v) : kt::AdjacencyList{}, false,
                       [&](bool valid, vertex_t to, offset_t e, vertex_t u) {
                         if (valid && distance.is_tight(distance[u], args.in_weights, e, distance[to]))
                           kt::keep_smallest(predecessor + to, u);
                       });
    kt::warp_barrier(kt::ALL_LANES);
    if (looks && kt::racy_load(predecessor + v) == kt::NO_PREDECESSOR) kt::atomic_add(args.without, int64{1});
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) flows_volumes_warp(const VolumeArgs args) {
  const int64 n_items = args.rows ? args.n_targets : args.n_rows * args.n_targets;
  for (int64 first = kt::warp_id() * kt::WARP; first < n_items; first += kt::n_warps() * kt::WARP) {
    const int64 i = first + kt::lane();
    Exact lost;
    if (i < n_items) {
      const int64 row = args.rows ? kt::load_constant(args.rows + i) : i / args.n_targets;
      const int64 j = args.rows ? i : i % args.n_targets;
      const vertex_t v = static_cast<vertex_t>(kt::load_constant(args.targets + j));
      const kt::distance_key key = kt::distances_of(args.distance, args.pitch, row)[v];
      const double far = kt::is_reached(key) ? kt::length_of(key) : 0.0;
      const bool is_served = kt::is_reached(key) && key <= args.limit;
      const Exact volume = volume_of(args, kt::load_constant(args.amounts + j), kt::load_constant(args.factors + row),
                                     kt::is_reached(key), far);
      const int64 at = row * args.n_vertices + v;
      if (is_served)
        kt::add_exactly(args.low + at, args.high + at, volume);
      else
        lost = volume;
      if (!is_served) kt::add_exactly(args.lost_low + 1, args.lost_high + 1, {1, 0});
    }
    if (!kt::any(kt::ALL_LANES, is_nonzero(lost))) continue;
    lost = kt::sum_of_lanes(lost);
    if (kt::lane() == 0) kt::add_exactly(args.lost_low, args.lost_high, lost);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) flows_children(const TreeArgs args) {
  const int64 n = args.n_vertices;
  for (int64 i = kt::thread_id(); i < args.n_rows * n; i += kt::n_threads()) {
    const vertex_t u = kt::load_constant(args.predecessor + i);
    if (u != kt::NO_PREDECESSOR && u != i % n) kt::atomic_add(args.arrivals + (i - i % n + u), uint64{1});
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) flows_gather(const TreeArgs args) {
  const int64 n = args.n_vertices;
  for (int64 i = kt::thread_id(); i < args.n_rows * n; i += kt::n_threads()) {
    // Arrivals change the upper half alone.
    if (static_cast<int32>(kt::racy_load(args.arrivals + i)) != 0) continue;
    const int64 row = i - i % n;
    for (int64 at = i;;) {
      const vertex_t u = kt::load_constant(args.predecessor + at);
      if (u == kt::NO_PREDECESSOR || row + u == at) break;
      // The children of `at` have added to it before they arrived.
      const Exact brought = {kt::racy_load(args.low + at), kt::racy_load(args.high + at)};
      at = row + u;
      if (is_nonzero(brought)) kt::add_exactly(args.low + at, args.high + at, brought);
      kt::fence();
      const uint64 before = kt::atomic_add(args.arrivals + at, ONE_ARRIVAL);
      if ((before >> 32) + 1 != (before & 0xffffffffu)) break;
      kt::fence();
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) flows_add(const AddArgs args) {
  const int64 n = args.n_vertices, n_slices = (args.n_rows + ROWS - 1) / ROWS;
  for (int64 i = kt::thread_id(); i < n_slices * n; i += kt::n_threads()) {
    const vertex_t v = static_cast<vertex_t>(i % n);
    const int64 first = i / n * ROWS, end = first + ROWS < args.n_rows ? first + ROWS : args.n_rows;
    Exact through, over;  // the vertex, and the edge from u
    vertex_t u = v;
    const auto add_edge = [&]() {
      if (u == v || args.edge_low == nullptr) return;
      const offset_t e = edge_of(args, u, v);
      kt::add_exactly(args.edge_low + e, args.edge_high + e, over);
    };
    for (int64 row = first; row < end; ++row) {
      const int64 at = row * n + v;
      const Exact volume = {kt::load_streaming(args.low + at), kt::load_streaming(args.high + at)};
      if (!is_nonzero(volume)) continue;
      const vertex_t from = kt::load_streaming(args.predecessor + at);
      if (from == kt::NO_PREDECESSOR) continue;
      through = sum_of(through, volume);
      if (from != u) {
        add_edge();
        u = from;
        over = {};
      }
      over = sum_of(over, volume);
    }
    add_edge();
    if (args.vertex_low) kt::add_exactly(args.vertex_low + v, args.vertex_high + v, through);
  }
}
