// Certificate of weighted distances from several sources: is every vertex exactly as far from each
// source as the best of its in-neighbors allows? And if only edges of length zero explain a distance,
// do they lead back to a vertex that is explained otherwise?
//
// Keys are distances as ordered integers (kt/float_order.cuh). A lane holds one key.
//
//   certificate_lay_out_weighted      transposes distances into tiles; checks each distance alone
//                                     (C1, C2)
//   certificate_batch_weighted_warp   checks the adjacency lists of the reverse graph (C3, C4)
//   certificate_finalize_weighted     the same for the vertices whose lists were visited in chunks.
//                                     Both set a bit in `unfounded` if no strictly nearer vertex
//                                     explains a distance
//   certificate_found_warp            clears the bits of vertices that a tight edge joins to a vertex
//                                     without the bit (C5). Bits are only cleared, so an old value
//                                     costs another round and nothing else
//
//   findings   see certificate_tiles.cuh, and batch_hops.cu for the places. OTHER are the largest
//              finite distance and the number of bits that were set
//
// Reads:  the distances once, the reverse graph with weights, and one tile per edge.
// Writes: tiles, the best distances of hubs, `unfounded` and findings.
//
// Compile-time constants: BLOCK, and those of certificate_tiles.cuh.
#include <kt/float_order.cuh>

#include "certificate_tiles.cuh"

namespace {

// The check of one list, for the source of this lane.
struct WeightedTile {
  static constexpr int32 LANES = TILE_BYTES / sizeof(weight_t);

  const weight_t* weights;
  const ordered_t* tiles;
  ordered_t* best_of_hubs;  // and the best of strictly nearer ones behind it
  int64* findings;
  uint32* unfounded;
  ordered_t limit;
  bool is_negative;  // whether there is such a weight
  int32 lane_in_tile;
  int64 source;
  int64 v = 0;
  ordered_t here = 0;            // the distance of v
  ordered_t best = 0;            // the least that its edges allow
  ordered_t best_of_nearer = 0;  // the least over edges from strictly nearer vertices

  KT_DEVICE ordered_t key_of(int64 vertex) const { return kt::load_constant(tiles + vertex * LANES + lane_in_tile); }

  KT_DEVICE void begin(vertex_t vertex) {
    v = vertex;
    here = key_of(v);
    best = best_of_nearer = kt::INFINITE;
  }
  KT_DEVICE void take(bool valid, offset_t e, vertex_t u) {
    const weight_t weight = valid ? kt::load_constant(weights + e) : static_cast<weight_t>(0);
    kt::broadcast_edges<LANES>(valid, [&](int32 first, int32 n) {
      ordered_t keys[kt::IN_FLIGHT];
      weight_t steps[kt::IN_FLIGHT];
#pragma unroll
      for (int32 i = 0; i < kt::IN_FLIGHT; ++i) {
        const int32 from = first + i < n ? first + i : 0;
        const vertex_t near = kt::broadcast(ALL_LANES, u, from, LANES);
        steps[i] = kt::broadcast(ALL_LANES, weight, from, LANES);
        keys[i] = first + i < n ? key_of(near) : kt::INFINITE;
      }
#pragma unroll
      for (int32 i = 0; i < kt::IN_FLIGHT; ++i) {
        const ordered_t through = kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(keys[i]), steps[i]));
        if (through < best) best = through;
        if (keys[i] < here && through < best_of_nearer) best_of_nearer = through;
      }
    });
  }
  KT_DEVICE ordered_t* place_of(int64 slot) const { return best_of_hubs + (slot * LANES + lane_in_tile) * 2; }
  KT_DEVICE void keep(int64 slot) const {
    if (best != kt::INFINITE) kt::atomic_min(place_of(slot), best);
    if (best_of_nearer != kt::INFINITE) kt::atomic_min(place_of(slot) + 1, best_of_nearer);
  }
  KT_DEVICE void recall(int64 slot) {
    best = place_of(slot)[0];
    best_of_nearer = place_of(slot)[1];
  }
  KT_DEVICE void compare_with_best() const {
    kt::compare(findings, v == source, here, best, limit, v * LANES + lane_in_tile);
    // With negative weights a predecessor may be farther than its successor, so a strictly nearer vertex does not
    // suffice: all vertices are checked.
    if (v == source || here == kt::INFINITE || (best_of_nearer == here && !is_negative)) return;
    kt::count(findings + 2 * kt::OTHER + 1);
    kt::atomic_or(unfounded + v, 1u << lane_in_tile);
  }
};

}  // namespace

// What the host passes (certificate/batch_gpu.py), here and below.
struct LayOutArgs {
  const weight_t* distance;
  int64 pitch;  // from the distances of one source to those of the next
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  const weight_t* limits;  // of each source: no distance is larger
  int32 is_negative;       // whether there is such a weight
  ordered_t* tiles;
  int64* findings;
};

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_lay_out_weighted(const LayOutArgs args) {
  KT_SHARED(ordered_t, tile, [WeightedTile::LANES][TILE + 1]);
  int64 largest = 0;
  for (int64 i = kt::thread_id(); i < args.n_sources; i += kt::n_threads())
    if (kt::to_ordered(kt::load_streaming(args.distance + i * args.pitch + kt::load_constant(args.sources + i))) != 0)
      kt::report(args.findings, kt::C1, i);
  kt::lay_out(tile, args.n_vertices, args.tiles, [&](int64 v, int32 source) {
    if (source >= args.n_sources) return kt::INFINITE;
    const ordered_t key = kt::to_ordered(kt::load_streaming(args.distance + source * args.pitch + v));
    if (key == kt::INFINITE) return key;
    // No sum of weights is -0.0, the largest of the negative keys; NaN lies beyond both infinities.
    const bool is_sound = key >= 0 || (args.is_negative && key < -1 && key > ~kt::INFINITE);
    const ordered_t limit = kt::to_ordered(kt::load_constant(args.limits + source));
    if (!is_sound || key > limit) kt::report(args.findings, kt::C2, source * args.n_vertices + v);
    if (key < kt::INFINITE && key > largest) largest = key;
    return key;
  });
  largest = kt::largest_of_all(largest);
  if (kt::lane() == 0 && largest > 0) kt::atomic_max(args.findings + 2 * kt::OTHER, largest);
}

struct CheckArgs {
  const offset_t* offsets;  // of the reverse graph
  const vertex_t* neighbors;
  const weight_t* weights;
  int64 n_vertices;
  const vertex_t* hubs;
  const uint64* chunks;
  const int64* counts;
  const ordered_t* tiles;
  const int64* sources;
  int64 n_sources;
  const weight_t* limits;  // of each source
  int32 is_negative;       // whether there is such a weight
  ordered_t* best_of_hubs;
  uint32* unfounded;
  int64* findings;
};

namespace {

// The tile of this lane's list.
KT_DEVICE WeightedTile tile_of(const CheckArgs& args) {
  const int32 lane = kt::lane() % WeightedTile::LANES;
  WeightedTile checked = {};
  checked.weights = args.weights;
  checked.tiles = args.tiles;
  checked.best_of_hubs = args.best_of_hubs;
  checked.findings = args.findings;
  checked.unfounded = args.unfounded;
  checked.limit = lane < args.n_sources ? kt::to_ordered(kt::load_constant(args.limits + lane)) : 0;
  checked.is_negative = args.is_negative != 0;
  checked.lane_in_tile = lane;
  checked.source = lane < args.n_sources ? kt::load_constant(args.sources + lane) : -1;
  return checked;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_batch_weighted_warp(const CheckArgs args) {
  WeightedTile checked = tile_of(args);
  kt::walk({args.offsets, args.neighbors}, args.n_vertices, kt::Hubs{args.hubs, args.chunks, args.counts}, checked);
}

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_finalize_weighted(const CheckArgs args) {
  WeightedTile checked = tile_of(args);
  kt::finalize(kt::Hubs{args.hubs, args.chunks, args.counts}, checked);
}

struct FoundArgs {
  const offset_t* offsets;  // of the reverse graph
  const vertex_t* neighbors;
  const weight_t* weights;
  const vertex_t* list;  // vertices with bits
  int64 n_listed;
  const ordered_t* tiles;
  uint32* unfounded;
  int64* taken;  // bits that were cleared
};

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_found_warp(const FoundArgs args) {
  const kt::Queue listed = {args.list, args.n_listed};
  kt::edges_by_warp({args.offsets, args.neighbors}, listed, [&](vertex_t v, offset_t e, vertex_t u) {
    const weight_t weight = kt::load_constant(args.weights + e);
    for (uint32 open = kt::racy_load(args.unfounded + v) & ~kt::racy_load(args.unfounded + u); open; open &= open - 1) {
      const int32 lane = kt::first_lane(open);
      const ordered_t near = kt::load_constant(args.tiles + int64{u} * WeightedTile::LANES + lane);
      const ordered_t here = kt::load_constant(args.tiles + int64{v} * WeightedTile::LANES + lane);
      if (near == kt::INFINITE || kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(near), weight)) != here)
        continue;
      if (kt::atomic_and(args.unfounded + v, ~(1u << lane)) >> lane & 1u) kt::count(args.taken);
    }
  });
}
