// Certificate of hop counts from several sources: is every vertex exactly as far from each source as
// the nearest of its in-neighbors allows?
//
// Keys are hop counts of KEY_BYTES bytes. An unreached vertex has all bits set and is therefore the
// farthest. A lane holds one word of keys.
//
//   certificate_list_hubs         lists the adjacency lists of CHUNK edges or more, and their chunks;
//                                 once for all blocks of sources
//   certificate_lay_out_hops      transposes distances into tiles; checks each distance alone (C1, C2)
//   certificate_batch_hops_warp   checks the adjacency lists of the reverse graph (C3, C4)
//   certificate_finalize_hops     the same for the vertices whose lists were visited in chunks
//
//   findings   see certificate_tiles.cuh. Places are a source (C1), source * n_vertices + vertex (C2),
//              and vertex * sources per tile + source (C3, C4)
//
// Reads:  the distances once, the reverse graph, and one tile per edge.
// Writes: tiles, the best distances of hubs, and findings.
//
// Compile-time constants: BLOCK, KEY_BYTES, and those of certificate_tiles.cuh.
#include "certificate_tiles.cuh"

namespace {

constexpr int32 KEYS = 4 / KEY_BYTES;  // of hops, a word
constexpr uint32 FARTHEST = 0xffffffffu >> (32 - 8 * KEY_BYTES);

struct HopsTile {
  static constexpr int32 LANES = TILE_BYTES / 4;
  static constexpr int32 SOURCES = LANES * KEYS;

  const uint32* tiles;
  uint32* best_of_hubs;
  int64* findings;
  int32 lane_in_tile;
  int64 sources[KEYS];
  uint32 limits[KEYS];
  int64 v = 0;
  uint32 best[KEYS];

  KT_DEVICE HopsTile(const uint32* all_tiles, const int64* all_sources, int64 n_sources, const uint32* all_limits,
                     uint32* best, int64* found)
      : tiles(all_tiles), best_of_hubs(best), findings(found), lane_in_tile(kt::lane() % LANES) {
    for (int32 i = 0; i < KEYS; ++i) {
      const int32 source = lane_in_tile * KEYS + i;
      sources[i] = source < n_sources ? kt::load_constant(all_sources + source) : -1;
      limits[i] = source < n_sources ? kt::load_constant(all_limits + source) : 0;
    }
  }
  KT_DEVICE static uint32 key(uint32 word, int32 i) { return word >> (8 * KEY_BYTES * i) & FARTHEST; }
  KT_DEVICE uint32 word_of(int64 vertex) const { return kt::load_constant(tiles + vertex * LANES + lane_in_tile); }

  KT_DEVICE void begin(vertex_t vertex) {
    v = vertex;
    for (uint32& key : best) key = FARTHEST;
  }
  KT_DEVICE void take(bool valid, offset_t, vertex_t u) {
    kt::broadcast_edges<LANES>(valid, [&](int32 first, int32 n) {
      uint32 words[kt::IN_FLIGHT];
#pragma unroll
      for (int32 i = 0; i < kt::IN_FLIGHT; ++i) {
        const vertex_t from = kt::broadcast(ALL_LANES, u, first + i < n ? first + i : 0, LANES);
        words[i] = first + i < n ? word_of(from) : ~0u;
      }
#pragma unroll
      for (int32 i = 0; i < kt::IN_FLIGHT; ++i)
#pragma unroll
        for (int32 k = 0; k < KEYS; ++k) best[k] = key(words[i], k) < best[k] ? key(words[i], k) : best[k];
    });
  }
  KT_DEVICE uint32* place_of(int64 slot, int32 i) const {
    return best_of_hubs + slot * SOURCES + lane_in_tile * KEYS + i;
  }
  KT_DEVICE void keep(int64 slot) const {
    for (int32 i = 0; i < KEYS; ++i)
      if (best[i] != FARTHEST) kt::atomic_min(place_of(slot, i), best[i]);
  }
  KT_DEVICE void recall(int64 slot) {
    for (int32 i = 0; i < KEYS; ++i) best[i] = *place_of(slot, i) & FARTHEST;
  }
  KT_DEVICE void compare_with_best() const {
    const uint32 word = word_of(v);
    for (int32 i = 0; i < KEYS; ++i) {
      const uint32 hops = best[i] + (best[i] != FARTHEST ? 1u : 0u);
      kt::compare(findings, v == sources[i], key(word, i), hops, limits[i], v * SOURCES + lane_in_tile * KEYS + i);
    }
  }
};

KT_DEVICE int32 hops_at(const uint8* distance, int32 hop_bytes, int64 at) {
  if (hop_bytes == 1) return kt::load_streaming(reinterpret_cast<const signed char*>(distance) + at);
  if (hop_bytes == 2) return kt::load_streaming(reinterpret_cast<const short*>(distance) + at);
  return kt::load_streaming(reinterpret_cast<const int32*>(distance) + at);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    certificate_list_hubs(const offset_t* offsets, int64 n_vertices, vertex_t* vertices, uint64* chunks,
                          int64* counts) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const kt::AdjacencyList list = kt::adjacency_list(offsets, static_cast<vertex_t>(v));
    if (list.end - list.begin < CHUNK) continue;
    const int64 n = (list.end - list.begin + CHUNK - 1) / CHUNK;
    const int64 slot = kt::atomic_add(counts, int64{1});
    const int64 first = kt::atomic_add(counts + 1, n);
    vertices[slot] = list.u;
    for (int64 i = 0; i < n; ++i) chunks[first + i] = static_cast<uint64>(i) << 32 | static_cast<uint64>(slot);
  }
}

// What the host passes (certificate/batch_gpu.py), here and below.
struct LayOutArgs {
  const uint8* distance;
  int32 hop_bytes;
  int64 pitch;  // from the hop counts of one source to those of the next
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  const int32* limits;  // of each source: no hop count is larger
  uint32* tiles;
  int64* findings;
};

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_lay_out_hops(const LayOutArgs args) {
  KT_SHARED(uint32, tile, [HopsTile::LANES][TILE + 1]);
  for (int64 i = kt::thread_id(); i < args.n_sources; i += kt::n_threads())
    if (hops_at(args.distance, args.hop_bytes, i * args.pitch + kt::load_constant(args.sources + i)) != 0)
      kt::report(args.findings, kt::C1, i);
  kt::lay_out(tile, args.n_vertices, args.tiles, [&](int64 v, int32 cell) {
    uint32 word = 0;
    for (int32 i = 0; i < KEYS; ++i) {
      const int64 source = cell * KEYS + i;
      const bool is_source = source < args.n_sources;
      const int32 hops = is_source ? hops_at(args.distance, args.hop_bytes, source * args.pitch + v) : kt::UNREACHED;
      const int32 limit = is_source ? kt::load_constant(args.limits + source) : 0;
      if (hops < kt::UNREACHED || hops > limit) kt::report(args.findings, kt::C2, source * args.n_vertices + v);
      word |= (static_cast<uint32>(hops) & FARTHEST) << (8 * KEY_BYTES * i);  // -1 is the largest
    }
    return word;
  });
}

struct CheckArgs {
  const offset_t* offsets;  // of the reverse graph
  const vertex_t* neighbors;
  int64 n_vertices;
  const vertex_t* hubs;
  const uint64* chunks;
  const int64* counts;
  const uint32* tiles;
  const int64* sources;
  int64 n_sources;
  const uint32* limits;  // of each source
  uint32* best_of_hubs;
  int64* findings;
};

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_batch_hops_warp(const CheckArgs args) {
  HopsTile checked(args.tiles, args.sources, args.n_sources, args.limits, args.best_of_hubs, args.findings);
  kt::walk({args.offsets, args.neighbors}, args.n_vertices, kt::Hubs{args.hubs, args.chunks, args.counts}, checked);
}

extern "C" __global__ void __launch_bounds__(BLOCK) certificate_finalize_hops(const CheckArgs args) {
  HopsTile checked(args.tiles, args.sources, args.n_sources, args.limits, args.best_of_hubs, args.findings);
  kt::finalize(kt::Hubs{args.hubs, args.chunks, args.counts}, checked);
}
