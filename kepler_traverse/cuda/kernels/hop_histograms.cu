// Statistics and histograms of hop counts, for several sources (distance_stats.cu: weighted distances).
//
//   distance_stats_hops_warp   the largest hop count of a source, and stored edges of reached vertices
//   distance_stats_levels      how many vertices are at 0, 1, 2, ... hops. A block counts TILE
//                              vertices of a source in shared memory
//   summary_of_levels          from such counts: vertices, the largest hop count, the sum of hops and
//                              of their reciprocals. One block per source
//
// The reciprocals are summed by halves in place, value i and value i + half, from the source's own
// last level on. No other source of the group therefore affects the bits of a sum
// (kepler_traverse/search/distance_stats.py).
//
// Compile-time constants:
//   BLOCK             threads per block
//   REDUCTION_BLOCK   values per reduction block
//   TILE              vertices that a block counts at once
//   LEVELS            levels that are counted in shared memory
//   HOP_BYTES         bytes per hop count
//   COUNT_BYTES       bytes per count of vertices at a level
//   N_STATISTICS      numbers per source that summary_of_levels writes
#include <kt/row_reductions.cuh>
#include <kt/scan.cuh>

namespace {

static_assert(N_STATISTICS == 4, "summary_of_levels stores so many");

using hop_t = kt::Signed<HOP_BYTES>::type;
using count_t = kt::Signed<COUNT_BYTES>::type;

}  // namespace

// found: for each source the largest hop count, and the stored edges of the reached vertices.
extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_hops_warp(const uint8* distance, int64 pitch, int64 n_vertices, int64 n_sources,
                             const offset_t* offsets, int64* found) {
  const int64 n_reduction_blocks = kt::reduction_blocks_of(n_vertices);
  for (int64 i = kt::warp_id(); i < n_sources * n_reduction_blocks; i += kt::n_warps()) {
    const int64 first = i % n_reduction_blocks * REDUCTION_BLOCK, end = kt::lesser(first + REDUCTION_BLOCK, n_vertices);
    const hop_t* const distances = reinterpret_cast<const hop_t*>(distance) + i / n_reduction_blocks * pitch;
    int32 hops[kt::VALUES_PER_LANE];
#pragma unroll
    for (int32 j = 0; j < kt::VALUES_PER_LANE; ++j) {
      const int64 v = first + j * WARP + kt::lane();
      hops[j] = v < end ? kt::load_constant(distances + v) : kt::UNREACHED;
    }

    // Bit j says whether value j is reached.
    uint32 bits = 0;
    int32 max_hops = kt::UNREACHED;
#pragma unroll
    for (int32 j = 0; j < kt::VALUES_PER_LANE; ++j) {
      if (hops[j] != kt::UNREACHED) bits |= 1u << j;
      if (hops[j] > max_hops) max_hops = hops[j];
    }

    const int64 edges = kt::sum_of_all(kt::edges_of_reduction_block(offsets, first, end, bits));
    max_hops = kt::reduce_max(ALL_LANES, max_hops);
    if (kt::lane() != 0 || max_hops == kt::UNREACHED) continue;
    kt::atomic_max(found + i / n_reduction_blocks * 2, int64{max_hops});
    kt::atomic_add(found + i / n_reduction_blocks * 2 + 1, edges);
  }
}

// Levels from LEVELS on, for which shared memory has no counter, are counted in global memory.
extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_levels(const uint8* distance, int64 pitch, int64 n_vertices, int64 n_sources, int64 n_levels,
                          int64* levels) {
  KT_SHARED(uint32, counts, [LEVELS]);
  const int64 n_tiles = (n_vertices + TILE - 1) / TILE, n_shared = kt::lesser(n_levels, LEVELS);
  for (int64 i = kt::block_id(); i < n_sources * n_tiles; i += kt::n_blocks()) {
    // Clear the counts of the block, which hold one source and tile at a time.
    for (int32 level = kt::thread_in_block(); level < n_shared; level += BLOCK) counts[level] = 0;
    kt::block_barrier();

    const int64 first = i % n_tiles * TILE, end = kt::lesser(first + TILE, n_vertices);
    const hop_t* const distances = reinterpret_cast<const hop_t*>(distance) + i / n_tiles * pitch;
    int64* const mine = levels + i / n_tiles * n_levels;
    int32 last = 0;
    uint32 equal = 0;

    // Adds the vertices in a row that are at the same level, which are counted in a register.
    const auto add = [&] {
      if (equal && last < LEVELS)
        kt::atomic_add(counts + last, equal);
      else if (equal)
        kt::atomic_add(mine + last, int64{equal});
    };

    kt::walk(distances, first, end, static_cast<hop_t>(kt::UNREACHED), [&](int32 hops) {
      if (hops == kt::UNREACHED || hops >= n_levels) return;
      if (hops != last) {
        add();
        equal = 0;
      }
      last = hops;
      ++equal;
    });
    add();
    kt::block_barrier();

    // Add the counts to those of the source.
    for (int32 level = kt::thread_in_block(); level < n_shared; level += BLOCK)
      if (counts[level]) kt::atomic_add(mine + level, int64{counts[level]});
    kt::block_barrier();
  }
}

// values: scratch memory for n_levels values per block of the grid.
extern "C" __global__ void __launch_bounds__(BLOCK)
    summary_of_levels(const uint8* counts, int64 pitch, int64 n_levels, int64 n_sources, double* values,
                      double* statistics) {
  KT_SHARED(int64, found, [3]);  // vertices, the sum of their hops, the largest hop count
  double* const mine = values + kt::block_id() * n_levels;
  for (int64 i = kt::block_id(); i < n_sources; i += kt::n_blocks()) {
    if (kt::thread_in_block() < 3) found[kt::thread_in_block()] = 0;
    kt::block_barrier();

    const count_t* const of_source = reinterpret_cast<const count_t*>(counts) + i * pitch;
    int64 vertices = 0, total = 0, max_hops = 0;
    for (int64 level = kt::thread_in_block(); level < n_levels; level += BLOCK) {
      const int64 count = kt::load_constant(of_source + level);
      mine[level] = level > 0 ? static_cast<double>(count) * (1.0 / static_cast<double>(level)) : 0.0;
      vertices += count;
      total += count * level;
      if (count > 0) max_hops = level;
    }

    vertices = kt::sum_of_all(vertices);
    total = kt::sum_of_all(total);
    max_hops = kt::largest_of_all(max_hops);
    if (kt::lane() == 0) {
      kt::atomic_add(found, vertices);
      kt::atomic_add(found + 1, total);
      kt::atomic_max(found + 2, max_hops);
    }
    kt::block_barrier();

    // Sum the reciprocals by halves in place.
    for (int64 size = found[2] + 1, half; size > 1; size = half) {
      half = (size + 1) / 2;
      for (int64 at = kt::thread_in_block(); at < size - half; at += BLOCK)
        mine[at] = kt::add_rounded(mine[at], mine[at + half]);  // which is never joined with the product above
      kt::block_barrier();
    }

    if (kt::thread_in_block() == 0) {
      double* const of_source_stats = statistics + i * N_STATISTICS;
      of_source_stats[0] = static_cast<double>(found[0]);
      of_source_stats[1] = static_cast<double>(found[2]);
      of_source_stats[2] = static_cast<double>(found[1]);
      of_source_stats[3] = mine[0];
    }
    kt::block_barrier();
  }
}
