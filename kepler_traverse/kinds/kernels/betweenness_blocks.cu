// Betweenness by hops or weights with one source per thread block, for graphs whose searches take many rounds.
//
// Distances are given. An edge (u, v) is on a shortest path if the distance of u and the weight make that of v; both
// are compared as the search rounded them. A vertex is ready when all of its predecessors are; by hops, when one is,
// since they share a level. The vertices in the order in which they became ready are the queue. Rounds of ready
// vertices end with a barrier of the block. The same rounds backward give the dependencies.
//
// A vertex adds over its adjacency list in order, with a sum of its own per CHUNK edges, so that its bits do not depend
// on the strategy. Lists of more than LONG edges are read by the whole warp.
//
//   betweenness_source_per_block   blocks take sources until none is left
//   betweenness_ends_warp          counts paths from the sources at both of their ends
//
// Compile-time constants:
//   BLOCK        threads per block
//   CHUNK        edges that are added before they are added to the rest
//   LONG         edges that one thread reads alone
//   PATHS_LOG2   a source with 2^PATHS_LOG2 shortest paths to a vertex is left to the host
//   HOP_BYTES    bytes per hop count; 0 if distances are weighted, of type weight_t
//
// After Brandes. A faster algorithm for betweenness centrality. Journal of Mathematical Sociology 25(2), 2001.
#include <kt/advance.cuh>
#include <kt/exact_sum.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/tight_edges.cuh>

namespace {

constexpr int32 EXPONENT = -64;  // of the unit of sums

KT_DEVICE int32 sum_in_order(int32 a, int32 b) { return a + b; }
KT_DEVICE double sum_in_order(double a, double b) { return kt::add_rounded(a, b); }

// A sum over an adjacency list in its order.
template <typename T>
struct Sum {
  T whole = 0, chunk = 0;
  int32 n = 0;

  KT_DEVICE void add(T value) {
    chunk = sum_in_order(chunk, value);
    if (++n < CHUNK) return;
    whole = sum_in_order(whole, chunk);
    chunk = 0;
    n = 0;
  }
  KT_DEVICE T value() const { return sum_in_order(whole, chunk); }
};

// The sum of of(u, e, v) over the adjacency list of each lane. All lanes of a warp call it.
template <typename T, typename Of>
KT_DEVICE T sum_of_list(const vertex_t* targets, kt::AdjacencyList mine, Of of) {
  Sum<T> sum;
  const bool is_long = mine.end - mine.begin > LONG;
  const auto add = [&](vertex_t u, offset_t e, vertex_t v) { sum.add(of(u, e, v)); };
  // Short lists are read by their lanes, and long ones by all lanes, one list after the other.
  if (!is_long) kt::edges_of_thread(targets, mine, add);
  for (uint32 left = kt::ballot(ALL_LANES, is_long); left; left &= left - 1) {
    const int32 owner = kt::first_lane(left);
    const kt::AdjacencyList list = {kt::broadcast(ALL_LANES, mine.u, owner),
                                    kt::broadcast(ALL_LANES, mine.begin, owner),
                                    kt::broadcast(ALL_LANES, mine.end, owner)};
    Sum<T> of_owner;
    kt::edges_of_list(targets, {0, 1}, list, [&](bool valid, vertex_t u, offset_t e, vertex_t v) {
      const T value = valid ? of(u, e, v) : T{0};
      for (int32 i = 0; i < WARP; ++i) of_owner.add(kt::broadcast(ALL_LANES, value, i));
    });
    if (kt::lane() == owner) sum = of_owner;
  }
  return sum.value();
}

}  // namespace

// What the host passes (kinds/betweenness_gpu.py).
struct BlockArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const weight_t* weights;
  const offset_t* in_offsets;  // of the reverse graph
  const vertex_t* in_targets;
  KT_NULLABLE const weight_t* in_weights;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  int64* taken;
  const uint8* distance;
  int64 pitch;       // from the distances of one source to those of the next
  double* values;    // [blocks][n_vertices]: paths, later (1 + dependency) / paths
  int32* waits_for;  // [blocks][n_vertices]: predecessors that are not ready
  vertex_t* order;   // [blocks][n_vertices]
  vertex_t* rounds;  // [blocks][n_vertices + 1]: where each round begins in the order
  int32* overflows;  // of sources with too many paths, or whose distances are no shortest paths
  KT_NULLABLE const uint8* is_target;
  KT_NULLABLE uint64* vertex_low;
  KT_NULLABLE int64* vertex_high;
  KT_NULLABLE uint64* edge_low;  // of the stored edges
  KT_NULLABLE int64* edge_high;
};

namespace {

// The search from one source, of which all threads of a block have a copy.
struct Search {
  const BlockArgs& args;
  kt::Distances distance;
  double* values;
  int32* waits_for;
  vertex_t* order;
  vertex_t* rounds;

  // Calls visit(is_there, v) with the vertices from `begin` to `end` of the order. Warps stay converged.
  template <typename Visit>
  KT_DEVICE void vertices(vertex_t begin, vertex_t end, Visit visit) const {
    for (vertex_t first = begin + kt::warp_in_block() * WARP; first < end; first += BLOCK) {
      const bool is_there = first + kt::lane() < end;
      visit(is_there, is_there ? order[first + kt::lane()] : static_cast<vertex_t>(0));
    }
  }

  // The predecessors of this lane's vertex on shortest paths. All lanes of a warp call it; likewise below.
  KT_DEVICE int32 count_predecessors(vertex_t v, bool is_there) const {
    const kt::AdjacencyList list = is_there ? kt::adjacency_list(args.in_offsets, v) : kt::AdjacencyList{};
    return sum_of_list<int32>(args.in_targets, list, [&](vertex_t at, offset_t e, vertex_t u) -> int32 {
      return distance.is_tight(distance[u], args.in_weights, e, distance[at]) ? 1 : 0;
    });
  }

  // The sum of their paths.
  KT_DEVICE double count_paths(vertex_t v, bool is_there) const {
    const kt::AdjacencyList list = is_there ? kt::adjacency_list(args.in_offsets, v) : kt::AdjacencyList{};
    return sum_of_list<double>(args.in_targets, list, [&](vertex_t at, offset_t e, vertex_t u) -> double {
      return distance.is_tight(distance[u], args.in_weights, e, distance[at]) ? values[u] : 0.0;
    });
  }

  // Tells the successors of this lane's vertex that it is ready, and appends those that now are.
  KT_DEVICE void pass_on(vertex_t v, bool is_there, vertex_t* size) const {
    const kt::AdjacencyList list = is_there ? kt::adjacency_list(args.offsets, v) : kt::AdjacencyList{};
    kt::edges_of_lanes(args.targets, list, false, [&](bool valid, vertex_t u, offset_t e, vertex_t w) {
      const bool is_ready = valid && distance.is_tight(distance[u], args.weights, e, distance[w]) &&
                            kt::atomic_add(waits_for + w, -1) == 1;
      const vertex_t place = kt::place_of(is_ready, size);
      if (is_ready) order[place] = w;
    });
  }

  // Adds the dependency of this lane's vertex, and replaces its paths.
  KT_DEVICE void add_load(vertex_t v, bool is_there, bool is_source) const {
    const kt::AdjacencyList list = is_there ? kt::adjacency_list(args.offsets, v) : kt::AdjacencyList{};
    const double sum = sum_of_list<double>(args.targets, list, [&](vertex_t u, offset_t e, vertex_t w) -> double {
      if (!distance.is_tight(distance[u], args.weights, e, distance[w])) return 0.0;
      const double value = values[w];
      if (args.edge_low)
        kt::add_exactly(args.edge_low + e, args.edge_high + e, kt::exact_of(values[u] * value, EXPONENT));
      return value;
    });
    kt::warp_barrier(ALL_LANES);  // lanes that read the list of another lane's vertex also read its paths
    if (!is_there) return;
    const double paths = values[v], dependency = paths * sum;
    const bool counts = args.is_target == nullptr || kt::load_constant(args.is_target + v);
    values[v] = kt::add_rounded(counts ? 1.0 : 0.0, dependency) / paths;
    if (args.vertex_low && !is_source)
      kt::add_exactly(args.vertex_low + v, args.vertex_high + v, kt::exact_of(dependency, EXPONENT));
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) betweenness_source_per_block(const BlockArgs args) {
  KT_SHARED(int64, next_source, [1]);
  KT_SHARED(vertex_t, size, [1]);
  KT_SHARED(int32, n_reached, [1]);
  KT_SHARED(int32, has_overflow, [1]);
  const int64 n = args.n_vertices, mine = kt::block_id();
  for (;;) {
    if (kt::thread_in_block() == 0) {
      next_source[0] = kt::atomic_add(args.taken, int64{1});
      size[0] = 1;
      n_reached[0] = 0;
      has_overflow[0] = 0;
    }
    kt::block_barrier();
    const int64 i = next_source[0];
    if (i >= args.n_sources) return;
    const vertex_t source = static_cast<vertex_t>(kt::load_constant(args.sources + i));
    const Search search{args,
                        kt::distances_of(args.distance, args.pitch, i),
                        args.values + mine * n,
                        args.waits_for + mine * n,
                        args.order + mine * n,
                        args.rounds + mine * (n + 1)};

    // Let each vertex that is reached wait for its predecessors.
    int32 reached = 0;
    for (int64 first = kt::warp_in_block() * WARP; first < n; first += BLOCK) {
      const int64 at = first + kt::lane();
      const vertex_t v = static_cast<vertex_t>(at < n ? at : 0);
      const bool is_there = at < n && kt::is_reached(search.distance[v]);
      reached += is_there;
      const int32 predecessors = HOP_BYTES ? 1 : search.count_predecessors(v, is_there);
      if (is_there) search.waits_for[v] = predecessors;
    }
    kt::atomic_add(n_reached, reached);
    if (kt::thread_in_block() == 0) {
      search.order[0] = source;
      search.rounds[0] = 0;
    }
    kt::block_barrier();

    // Count paths forward, and note where each round of ready vertices begins.
    int64 round = 0;
    for (vertex_t begin = 0, end = 1; begin < end; ++round) {
      search.vertices(begin, end, [&](bool is_there, vertex_t v) {
        const double of_others = search.count_paths(v, is_there), paths = v == source ? 1.0 : of_others;
        if (is_there) search.values[v] = paths;
        if (is_there && kt::bits_of(paths) >> 52 >= PATHS_LOG2 + 1023) kt::racy_store(has_overflow, 1);
        search.pass_on(v, is_there, size);
      });
      kt::block_barrier();
      begin = end;
      end = size[0];
      if (kt::thread_in_block() == 0) search.rounds[round + 1] = begin;
      kt::block_barrier();
    }
    // A vertex that never was ready is on a cycle of edges that add nothing.
    if (has_overflow[0] || n_reached[0] != size[0]) {
      if (kt::thread_in_block() == 0) args.overflows[i] = 1;
      round = 0;
    }
    // Add dependencies backward, in the same rounds.
    for (--round; round >= 0; --round) {
      search.vertices(search.rounds[round], search.rounds[round + 1],
                      [&](bool is_there, vertex_t v) { search.add_load(v, is_there, v == source); });
      kt::block_barrier();
    }
    kt::block_barrier();
  }
}

struct EndsArgs {
  const uint8* distance;
  int64 pitch;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  const int32* overflows;  // sources that are left out
  KT_NULLABLE const uint8* is_target;
  int64* high;  // of sums of vertices, in units of 2^-64
};

extern "C" __global__ void __launch_bounds__(BLOCK) betweenness_ends_warp(const EndsArgs args) {
  const int64 pieces = (args.n_vertices + WARP - 1) / WARP;
  for (int64 i = kt::warp_id(); i < pieces * args.n_sources; i += kt::n_warps()) {
    const int64 row = i / pieces, v = i % pieces * WARP + kt::lane(), source = kt::load_constant(args.sources + row);
    if (kt::load_constant(args.overflows + row)) continue;
    const kt::Distances distance = kt::distances_of(args.distance, args.pitch, row);

    const bool is_end = v < args.n_vertices && v != source && kt::is_reached(distance[static_cast<vertex_t>(v)]) &&
                        (args.is_target == nullptr || kt::load_constant(args.is_target + v));
    if (is_end) kt::atomic_add(args.high + v, int64{1});
    const uint32 ends = kt::ballot(ALL_LANES, is_end);
    if (kt::lane() == 0 && ends) kt::atomic_add(args.high + source, int64{kt::count_lanes(ends)});
  }
}
