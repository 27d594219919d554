// Betweenness by hops for groups of 32 sources, one source per lane.
//
// The 32 values of a vertex are adjacent: one line of doubles, and one line of levels. A launch handles one level of
// all sources. A warp takes a vertex, reads each edge once for all lanes, and takes the neighbor's value in the lanes
// where the level fits. A lane adds in the order of the adjacency list, so there is nothing to reduce and no atomic.
// Lists of CHUNK edges or more are summed in chunks by several warps, and the sums of the chunks are added in order.
//
//   betweenness_lines_warp    hop counts, one row per source -> lines of levels, and of each vertex the levels that
//   occur betweenness_counts_warp   shortest paths to the vertices of a level, from those to the level before
//   betweenness_loads_warp    dependencies of the vertices of a level, from the level after
//   betweenness_chunks_warp   the chunks of long lists, before each of the last two
//
// After the pass back over a level, `values` holds (1 + dependency) / paths in place of the paths: all that the level
// before reads. So one line per edge is read on both ways.
//
// A value of a level is written in one launch and read in others. Lanes of other levels are not touched.
//
// Compile-time constants:
//   BLOCK        threads per block
//   CHUNK        edges per chunk of a long adjacency list
//   PATHS_LOG2   a source with 2^PATHS_LOG2 shortest paths to a vertex is left to the host
//
// After Brandes. A faster algorithm for betweenness centrality. Journal of Mathematical Sociology 25(2), 2001, with
// sources that share edges as in Sariyuce, Saule, Kaya, Catalyurek. Hardware/software vectorization for closeness
// centrality on multi-/many-core architectures. MTAAP 2014.
#include <kt/advance.cuh>
#include <kt/exact_sum.cuh>

namespace {

using level_t = signed char;
constexpr int32 EXPONENT = -64;  // of the unit of sums
constexpr int32 LAST_BIT = 63;   // of a word of levels; this bit is for all higher ones
constexpr int32 AT_ONCE = 8;     // vertices per warp whose words are read together

// The bit of a level in a word of levels.
KT_DEVICE int32 bit_of(int32 level) { return level < LAST_BIT ? level : LAST_BIT; }

}  // namespace

// What the host passes (kinds/betweenness_gpu.py).
struct LinesArgs {
  const uint8* distance;
  int64 pitch;  // from the hop counts of one source to those of the next
  int64 n_vertices;
  int64 n_sources;
  uint8* levels;    // [groups][n_vertices][32]
  uint64* present;  // [groups][n_vertices]: bit i is set if a lane has level i
  double* values;   // [groups][n_vertices][32]; written at the sources
};

struct LevelArgs {
  const offset_t* offsets;  // counts: of the reverse graph
  const vertex_t* targets;
  int64 n_vertices;
  int64 n_groups;
  const uint64* hub_chunks;  // of lists of CHUNK edges or more: number of the chunk above, vertex below
  int64 n_hub_chunks;
  const uint8* levels;
  const uint64* present;
  double* values;   // [groups][n_vertices][32]
  double* partial;  // [groups][n_hub_chunks][32]
  int32 level;
  int32 wanted;      // the level of neighbors
  int32 is_last;     // no vertex has a higher level, so dependencies are 0
  int32* overflows;  // [groups][32]; of sources with too many paths
  KT_NULLABLE const uint8* is_target;
  KT_NULLABLE uint64* vertex_low;
  KT_NULLABLE int64* vertex_high;
  KT_NULLABLE uint64* edge_low;  // of the stored edges
  KT_NULLABLE int64* edge_high;
};

namespace {

// A vertex, or a chunk of its edges, for the lanes in which the vertex has the level.
struct Item {
  int64 group;
  kt::AdjacencyList list;
  int64 place;  // of the vertex's line
  bool is_mine;
};

// The item of a list, with the place of its vertex in this lane.
KT_DEVICE Item item_of(const LevelArgs& args, int64 group, kt::AdjacencyList list) {
  const int64 place = (group * args.n_vertices + list.u) * WARP + kt::lane();
  // A lane that is left to the host may have any values, so an old flag does no harm.
  const bool has_level = static_cast<level_t>(kt::load_constant(args.levels + place)) == args.level;
  return {group, list, place, has_level && kt::racy_load(args.overflows + group * WARP + kt::lane()) == 0};
}

// The sum of the neighbors' values over an adjacency list, in its order. All lanes of a warp call it.
KT_DEVICE double sum_of_neighbors(const LevelArgs& args, const Item& item, bool adds_edges) {
  const int64 base = item.group * args.n_vertices;
  const double here = adds_edges && item.is_mine ? args.values[item.place] : 0.0;
  double sum = 0.0;
  kt::edges_of_list(args.targets, {0, 1}, item.list, [&](bool valid, vertex_t, offset_t e, vertex_t v) {
    constexpr int32 IN_FLIGHT = 8;  // edges whose lines are loaded together
    const int32 n = kt::count_lanes(kt::ballot(ALL_LANES, valid));
    const offset_t first_edge = kt::broadcast(ALL_LANES, e, 0);
    for (int32 first = 0; first < n; first += IN_FLIGHT) {
      // Load the values of some neighbors together, in the lanes where they have the level, and add them in order.
      int64 place[IN_FLIGHT];
      bool fits[IN_FLIGHT];
      double value[IN_FLIGHT];
#pragma unroll
      for (int32 i = 0; i < IN_FLIGHT; ++i) {
        const vertex_t to = kt::broadcast(ALL_LANES, v, first + i < n ? first + i : n - 1);
        place[i] = (base + to) * WARP + kt::lane();
        fits[i] = item.is_mine && first + i < n &&
                  static_cast<level_t>(kt::load_constant(args.levels + place[i])) == args.wanted;
      }
#pragma unroll
      for (int32 i = 0; i < IN_FLIGHT; ++i) value[i] = fits[i] ? args.values[place[i]] : 0.0;
#pragma unroll
      for (int32 i = 0; i < IN_FLIGHT; ++i) sum = kt::add_rounded(sum, value[i]);

      // What each of these edges carries, over all lanes.
      if (!adds_edges) continue;
      for (int32 i = 0; i < IN_FLIGHT && first + i < n; ++i) {
        if (!kt::any(ALL_LANES, fits[i])) continue;
        const kt::Exact load = kt::sum_of_lanes(kt::exact_of(here * value[i], EXPONENT));
        const offset_t edge = first_edge + first + i;
        if (kt::lane() == 0) kt::add_exactly(args.edge_low + edge, args.edge_high + edge, load);
      }
    }
  });
  return sum;
}

// Calls take(item) for each vertex that has the level in a lane, of fewer than CHUNK edges.
template <typename Take>
KT_DEVICE void vertices_of_level(const LevelArgs& args, Take take) {
  const uint64 bit = 1ULL << bit_of(args.level);
  const int64 n_items = args.n_groups * args.n_vertices;
  for (int64 first = kt::warp_id() * AT_ONCE; first < n_items; first += kt::n_warps() * AT_ONCE) {
    // The first lanes look at one vertex each, and all lanes take those found.
    const int64 mine = first + kt::lane();
    const bool is_one = kt::lane() < AT_ONCE && mine < n_items && (kt::load_constant(args.present + mine) & bit);
    for (uint32 left = kt::ballot(ALL_LANES, is_one); left; left &= left - 1) {
      const int64 i = first + kt::first_lane(left);
      const vertex_t v = static_cast<vertex_t>(i % args.n_vertices);
      const kt::AdjacencyList list = kt::adjacency_list(args.offsets, v);
      if (list.end - list.begin < CHUNK) take(item_of(args, i / args.n_vertices, list));
    }
  }
}

// Calls take(i, chunk, item) for each chunk of a long list, the i-th of all groups; item has the whole list.
template <typename Take>
KT_DEVICE void chunks_of_level(const LevelArgs& args, Take take) {
  const uint64 bit = 1ULL << bit_of(args.level);
  for (int64 i = kt::warp_id(); i < args.n_groups * args.n_hub_chunks; i += kt::n_warps()) {
    const int64 group = i / args.n_hub_chunks;
    const uint64 chunk = kt::load_constant(args.hub_chunks + i % args.n_hub_chunks);
    const vertex_t v = static_cast<vertex_t>(chunk & 0xffffffffu);
    if (!(kt::load_constant(args.present + group * args.n_vertices + v) & bit)) continue;
    take(i, static_cast<int64>(chunk >> 32), item_of(args, group, kt::adjacency_list(args.offsets, v)));
  }
}

// What the level before reads.
KT_DEVICE double value_of(const LevelArgs& args, const Item& item, double paths, double dependency) {
  const bool counts = args.is_target == nullptr || kt::load_constant(args.is_target + item.list.u);
  return kt::add_rounded(counts ? 1.0 : 0.0, dependency) / paths;
}

// Calls take(item, sum) for each vertex of the level with the sum over its neighbors.
template <typename Take>
KT_DEVICE void sums_of_level(const LevelArgs& args, bool adds_edges, Take take) {
  // Long lists: the sums of their chunks were written by betweenness_chunks_warp. Then all others.
  chunks_of_level(args, [&](int64 i, int64 chunk, const Item& item) {
    if (chunk) return;
    const int64 n_chunks = (item.list.end - item.list.begin + CHUNK - 1) / CHUNK;
    double sum = 0.0;
    for (int64 at = i; at < i + n_chunks; ++at)
      sum = kt::add_rounded(sum, kt::load_constant(args.partial + at * WARP + kt::lane()));
    take(item, sum);
  });
  vertices_of_level(args, [&](const Item& item) { take(item, sum_of_neighbors(args, item, adds_edges)); });
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) betweenness_lines_warp(const LinesArgs args) {
  KT_SHARED(uint8, tiles, [BLOCK / WARP][WARP][WARP + 4]);
  auto& tile = tiles[kt::warp_in_block()];
  const int64 pieces = (args.n_vertices + WARP - 1) / WARP, n_groups = (args.n_sources + WARP - 1) / WARP;
  for (int64 i = kt::warp_id(); i < pieces * n_groups; i += kt::n_warps()) {
    const int64 group = i / pieces, first = i % pieces * WARP;
    const int32 lane = kt::lane();
    // Read the hops of 32 vertices from one source after the other, and write them vertex by vertex.
    for (int32 j = 0; j < WARP; ++j) {
      const int64 source = group * WARP + j;
      const bool is_there = source < args.n_sources && first + lane < args.n_vertices;
      tile[lane][j] = is_there ? kt::load_streaming(args.distance + source * args.pitch + first + lane)
                               : static_cast<uint8>(kt::UNREACHED);
    }
    kt::warp_barrier(ALL_LANES);

    for (int32 j = 0; j < WARP && first + j < args.n_vertices; ++j) {
      const level_t level = static_cast<level_t>(tile[j][lane]);
      const uint64 bit = level < 0 ? 0 : 1ULL << bit_of(level);
      const uint32 low = kt::reduce_or(ALL_LANES, static_cast<uint32>(bit));
      const uint32 high = kt::reduce_or(ALL_LANES, static_cast<uint32>(bit >> 32));
      const int64 line = group * args.n_vertices + first + j;
      args.levels[line * WARP + lane] = tile[j][lane];
      if (level == 0) args.values[line * WARP + lane] = 1.0;
      if (lane == 0) args.present[line] = static_cast<uint64>(high) << 32 | low;
    }
    kt::warp_barrier(ALL_LANES);
  }
}

// Sums each chunk of a long list; loads of edges are added on the way back only.
extern "C" __global__ void __launch_bounds__(BLOCK) betweenness_chunks_warp(const LevelArgs args) {
  chunks_of_level(args, [&](int64 i, int64 chunk, Item item) {
    item.list = kt::cut<CHUNK>(item.list, chunk);
    args.partial[i * WARP + kt::lane()] =
        sum_of_neighbors(args, item, args.edge_low != nullptr && args.wanted > args.level);
  });
}

// The paths to a vertex are those to its predecessors; on the last level what the level before reads follows at once.
extern "C" __global__ void __launch_bounds__(BLOCK) betweenness_counts_warp(const LevelArgs args) {
  sums_of_level(args, false, [&](const Item& item, double paths) {
    if (!item.is_mine) return;
    args.values[item.place] = args.is_last ? value_of(args, item, paths, 0.0) : paths;
    if (kt::bits_of(paths) >> 52 >= PATHS_LOG2 + 1023)
      kt::racy_store(args.overflows + item.group * WARP + kt::lane(), 1);
  });
}

// The dependency of a vertex is its paths times the sum over its successors.
extern "C" __global__ void __launch_bounds__(BLOCK) betweenness_loads_warp(const LevelArgs args) {
  sums_of_level(args, args.edge_low != nullptr, [&](const Item& item, double sum) {
    kt::Exact load;
    if (item.is_mine) {
      const double paths = args.values[item.place], dependency = paths * sum;
      args.values[item.place] = value_of(args, item, paths, dependency);
      load = kt::exact_of(dependency, EXPONENT);
    }
    if (args.vertex_low == nullptr || args.level == 0) return;
    load = kt::sum_of_lanes(load);
    if (kt::lane() == 0) kt::add_exactly(args.vertex_low + item.list.u, args.vertex_high + item.list.u, load);
  });
}
