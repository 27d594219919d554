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

using kt::ALL_LANES;
using kt::AT_ONCE;
using kt::Hubs;
using kt::int32;
using kt::int64;
using kt::TILE;
using kt::uint32;
using kt::uint64;

using ordered_t = kt::key_of<weight_t>;
constexpr ordered_t INFINITE = kt::Key<weight_t>::INFINITE;

struct WeightedTile {
  static constexpr int32 LANES = TILE_BYTES / sizeof(weight_t);

  const weight_t* weights;
  const ordered_t* lines;
  ordered_t* best_of_hubs;  // and the best of strictly nearer ones behind it
  int64* findings;
  uint32* unfounded;
  ordered_t limit;
  bool is_negative;  // whether there is such a weight
  int32 in_line;
  int64 source;
  int64 v = 0;
  ordered_t here = 0, best = 0, src_distance = 0;

  KT_DEVICE ordered_t key_of(int64 vertex) const { return kt::load_constant(lines + vertex * LANES + in_line); }

  KT_DEVICE void begin(vertex_t vertex) {
    v = vertex;
    here = key_of(v);
    best = src_distance = INFINITE;
  }
  KT_DEVICE void take(bool valid, offset_t e, vertex_t u) {
    const weight_t weight = valid ? kt::load_constant(weights + e) : static_cast<weight_t>(0);
    kt::broadcast_edges<LANES>(valid, [&](int32 first, int32 n) {
      ordered_t keys[AT_ONCE];
      weight_t steps[AT_ONCE];
#pragma unroll
      for (int32 i = 0; i < AT_ONCE; ++i) {
        const int32 from = first + i < n ? first + i : 0;
        const vertex_t near = kt::broadcast(ALL_LANES, u, from, LANES);
        steps[i] = kt::broadcast(ALL_LANES, weight, from, LANES);
        keys[i] = first + i < n ? key_of(near) : INFINITE;
      }
#pragma unroll
      for (int32 i = 0; i < AT_ONCE; ++i) {
        const ordered_t through = kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(keys[i]), steps[i]));
        if (through < best) best = through;
        if (keys[i] < here && through < src_distance) src_distance = through;
      }
    });
  }
  KT_DEVICE ordered_t* place_of(int64 slot) const { return best_of_hubs + (slot * LANES + in_line) * 2; }
  KT_DEVICE void keep(int64 slot) const {
    if (best != INFINITE) kt::atomic_min(place_of(slot), best);
    if (src_distance != INFINITE) kt::atomic_min(place_of(slot) + 1, src_distance);
  }
  KT_DEVICE void recall(int64 slot) {
    best = place_of(slot)[0];
    src_distance = place_of(slot)[1];
  }
  KT_DEVICE void compare_with_best() const {
    kt::compare(findings, v == source, here, best, limit, v * LANES + in_line);
    // With negative weights a predecessor may be farther than its successor, so a strictly nearer vertex does not
    // suffice: all vertices are checked.
    if (v == source || here == INFINITE || (src_distance == here && !is_negative)) return;
    kt::count(findings + 2 * kt::OTHER + 1);
    kt::atomic_or(unfounded + v, 1u << in_line);
  }
};

KT_DEVICE int64 source_of_lane(const int64* sources, int64 n_sources, int32 lane) {
  return lane < n_sources ? kt::load_constant(sources + lane) : -1;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_lay_out_weighted(const weight_t* __restrict__ distance, int64 pitch, int64 n_vertices,
                                 const int64* __restrict__ sources, int64 n_sources, weight_t limit, int32 is_negative,
                                 ordered_t* lines, int64* findings) {
  KT_SHARED(ordered_t, tile, [WeightedTile::LANES][TILE + 1]);
  const ordered_t farthest = kt::to_ordered(limit);
  int64 largest = 0;
  for (int64 i = kt::thread_id(); i < n_sources; i += kt::n_threads())
    if (kt::to_ordered(kt::load_streaming(distance + i * pitch + kt::load_constant(sources + i))) != 0)
      kt::note(findings, kt::C1, i);
  kt::lay_out(tile, n_vertices, lines, [&](int64 v, int32 source) {
    if (source >= n_sources) return INFINITE;
    const ordered_t key = kt::to_ordered(kt::load_streaming(distance + source * pitch + v));
    if (key == INFINITE) return key;
    // No sum of weights is -0.0, the largest of the negative keys; NaN lies beyond both infinities.
    const bool is_sound = key >= 0 || (is_negative && key < -1 && key > ~INFINITE);
    if (!is_sound || key > farthest) kt::note(findings, kt::C2, source * n_vertices + v);
    if (key < INFINITE && key > largest) largest = key;
    return key;
  });
  for (int32 mask = 1; mask < kt::WARP; mask *= 2) {
    const int64 other = kt::shuffle_xor(ALL_LANES, largest, mask);
    if (other > largest) largest = other;
  }
  if (kt::lane() == 0 && largest > 0) kt::atomic_max(findings + 2 * kt::OTHER, largest);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_batch_weighted_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ neighbours,
                                    const weight_t* __restrict__ weights, int64 n_vertices,
                                    const vertex_t* __restrict__ hubs, const uint64* __restrict__ pieces,
                                    const int64* __restrict__ counts, const ordered_t* __restrict__ lines,
                                    const int64* __restrict__ sources, int64 n_sources, weight_t limit,
                                    int32 is_negative, ordered_t* best_of_hubs, uint32* unfounded, int64* findings) {
  const int32 in_line = kt::lane() % WeightedTile::LANES;
  WeightedTile line{weights,          lines,     best_of_hubs,
                    findings,         unfounded, kt::to_ordered(limit),
                    is_negative != 0, in_line,   source_of_lane(sources, n_sources, in_line)};
  kt::walk({offsets, neighbours}, n_vertices, Hubs{hubs, pieces, counts}, line);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_finalize_weighted(const vertex_t* __restrict__ hubs, const int64* __restrict__ counts,
                                  const ordered_t* __restrict__ lines, const int64* __restrict__ sources,
                                  int64 n_sources, weight_t limit, int32 is_negative, ordered_t* best_of_hubs,
                                  uint32* unfounded, int64* findings) {
  const int32 in_line = kt::lane() % WeightedTile::LANES;
  WeightedTile line{nullptr,          lines,     best_of_hubs,
                    findings,         unfounded, kt::to_ordered(limit),
                    is_negative != 0, in_line,   source_of_lane(sources, n_sources, in_line)};
  kt::finalize(Hubs{hubs, nullptr, counts}, line);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_found_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ neighbours,
                           const weight_t* __restrict__ weights, const vertex_t* __restrict__ list, int64 n_listed,
                           const ordered_t* __restrict__ lines, uint32* unfounded, int64* taken) {
  kt::edges_by_warp({offsets, neighbours}, kt::Queue{list, n_listed}, [=](vertex_t v, offset_t e, vertex_t u) {
    const weight_t weight = kt::load_constant(weights + e);
    for (uint32 open = kt::racy_load(unfounded + v) & ~kt::racy_load(unfounded + u); open; open &= open - 1) {
      const int32 lane = kt::first_lane(open);
      const ordered_t near = kt::load_constant(lines + int64{u} * WeightedTile::LANES + lane);
      const ordered_t here = kt::load_constant(lines + int64{v} * WeightedTile::LANES + lane);
      if (near == INFINITE || kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(near), weight)) != here)
        continue;
      if (kt::atomic_and(unfounded + v, ~(1u << lane)) >> lane & 1u) kt::count(taken);
    }
  });
}
