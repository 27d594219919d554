// Statistics of weighted distances, for several sources: the number of reached vertices, the smallest
// and the largest distance, the sums of distances and of reciprocals of positive ones, and edges. Also
// histograms of distances.
//
// The number of vertices alone decides the order of a sum (kepler_traverse/search/distance_stats.py), so that
// it has the same bits as on a CPU. A reduction block of REDUCTION_BLOCK values is summed by halves. The sums of
// the blocks are summed in the same way, until one is left. Unreached vertices count as 0. A warp sums
// one block: lane i holds the values i, i + 32, i + 64, ..., sums them in registers, and then the
// lanes add up their sums.
//
//   distance_stats_reduce_warp   one record of RECORD_WORDS words per source and reduction block
//   distance_stats_fold_warp     reduces REDUCTION_BLOCK records to one
//   distance_stats_bins          a block counts TILE vertices of a source in shared memory
//
//   record   bits of the two sums; vertices within the limit; the smallest and the largest of their
//            distances as keys of kt/float_order.cuh; edges of all reached vertices
//
// Compile-time constants:
//   BLOCK             threads per block
//   REDUCTION_BLOCK   values per reduction block
//   BINS              bins per histogram
//   TILE              vertices that a block counts at once
//   RECORD_WORDS      64-bit words per record
#include <kt/float_order.cuh>
#include <kt/row_reductions.cuh>

namespace {

constexpr int64 MAX_KEY = kt::Key<double>::LOWEST_BITS;
static_assert(RECORD_WORDS == kt::DistanceRecord::N_WORDS, "records are stored one after the other");

// Reduces the records of all lanes, sums by halves; lane 0 writes the result.
KT_DEVICE void write_folded(kt::DistanceRecord mine, int64* record) {
  for (int32 half = WARP / 2; half > 0; half /= 2) {
    mine.sums = kt::sum_of(mine.sums, {kt::shuffle_down(ALL_LANES, mine.sums.total, half),
                                       kt::shuffle_down(ALL_LANES, mine.sums.harmonic, half)});
    mine.reached += kt::shuffle_down(ALL_LANES, mine.reached, half);
    mine.lowest = kt::lesser(mine.lowest, kt::shuffle_down(ALL_LANES, mine.lowest, half));
    mine.highest = kt::larger(mine.highest, kt::shuffle_down(ALL_LANES, mine.highest, half));
    mine.edges += kt::shuffle_down(ALL_LANES, mine.edges, half);
  }
  if (kt::lane() == 0) mine.store(record);
}

}  // namespace

// What the host passes (cuda/distance_stats.py).
struct ReduceArgs {
  const weight_t* distance;
  int64 pitch;  // from the distances of one source to those of the next
  int64 n_vertices;
  int64 n_sources;
  weight_t limit;  // vertices beyond it are left out
  const offset_t* offsets;
  int64* records;
};

extern "C" __global__ void __launch_bounds__(BLOCK) distance_stats_reduce_warp(const ReduceArgs args) {
  const int64 n_reduction_blocks = kt::reduction_blocks_of(args.n_vertices);
  const ordered_t limit_key = kt::to_ordered(args.limit);
  for (int64 i = kt::warp_id(); i < args.n_sources * n_reduction_blocks; i += kt::n_warps()) {
    // Lane i loads the values i, i + 32, ... of the block; what is beyond the last vertex counts as
    // unreached.
    const int64 first = i % n_reduction_blocks * REDUCTION_BLOCK,
                end = kt::lesser(first + REDUCTION_BLOCK, args.n_vertices);
    const weight_t* const distances = args.distance + i / n_reduction_blocks * args.pitch;
    weight_t values[kt::VALUES_PER_LANE];
#pragma unroll
    for (int32 j = 0; j < kt::VALUES_PER_LANE; ++j) {
      const int64 v = first + j * WARP + kt::lane();
      values[j] = v < end ? kt::load_constant(distances + v) : kt::float_of(kt::INFINITE);
    }

    // Vertices within the limit, and which of them have a distance at all: bit j for value j.
    uint32 bits = 0;
    int32 reached = 0;
    ordered_t lowest = kt::Key<weight_t>::LOWEST_BITS, highest = -lowest - 1;
#pragma unroll
    for (int32 j = 0; j < kt::VALUES_PER_LANE; ++j) {
      const ordered_t key = kt::to_ordered(values[j]);
      if (!kt::is_finite<weight_t>(key)) continue;
      bits |= 1u << j;
      if (key > limit_key) continue;
      ++reached;
      if (key < lowest) lowest = key;
      if (key > highest) highest = key;
    }

    const kt::DistanceSums sums = kt::folded<kt::DistanceSums>([&](int32 j) -> kt::DistanceSums {
      const ordered_t key = kt::to_ordered(values[j]);
      if (!kt::is_finite<weight_t>(key) || key > limit_key) return {0.0, 0.0};
      const double value = kt::widened(values[j]);
      return {value, key > 0 ? 1.0 / value : 0.0};
    });
    const int64 edges = kt::edges_of_reduction_block(args.offsets, first, end, bits);
    const bool any = reached > 0;
    write_folded({sums, reached, any ? lowest : MAX_KEY, any ? highest : -MAX_KEY - 1, edges},
                 args.records + i * RECORD_WORDS);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_fold_warp(const int64* records, int64 n_records, int64 n_sources, int64* folded_records) {
  const int64 n_reduction_blocks = kt::reduction_blocks_of(n_records);
  for (int64 i = kt::warp_id(); i < n_sources * n_reduction_blocks; i += kt::n_warps()) {
    const int64 first = i % n_reduction_blocks * REDUCTION_BLOCK;
    const int64* const of_source = records + i / n_reduction_blocks * n_records * RECORD_WORDS;
    kt::DistanceRecord mine{{0.0, 0.0}, 0, MAX_KEY, -MAX_KEY - 1, 0};
    mine.sums = kt::folded<kt::DistanceSums>([&](int32 j) -> kt::DistanceSums {
      const int64 at = first + j * WARP + kt::lane();
      if (at >= n_records) return {0.0, 0.0};
      const int64* const record = of_source + at * RECORD_WORDS;
      mine.reached += kt::load_constant(record + 2);
      mine.lowest = kt::lesser(mine.lowest, kt::load_constant(record + 3));
      mine.highest = kt::larger(mine.highest, kt::load_constant(record + 4));
      mine.edges += kt::load_constant(record + 5);
      return {kt::float_of(kt::load_constant(record)), kt::float_of(kt::load_constant(record + 1))};
    });
    write_folded(mine, folded_records + i * RECORD_WORDS);
  }
}

// The scale of a source.
struct Scale {
  int64 bins_per_unit;  // bits of a double, a power of two
  int64 first_bin;
};

// Neighbors are at about the same distance: a thread counts equal bins first, so that few atomics meet in a word.
// The arguments are no struct: with one, the kernel needs 36 registers in place of 32.
extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_bins(const weight_t* distance, int64 pitch, int64 n_vertices, int64 n_sources, weight_t limit,
                        const Scale* scales, int64* bins) {
  KT_SHARED(uint32, counts, [BINS]);
  const int64 n_tiles = (n_vertices + TILE - 1) / TILE;
  const ordered_t limit_key = kt::to_ordered(limit);
  for (int64 i = kt::block_id(); i < n_sources * n_tiles; i += kt::n_blocks()) {
    // Clear the counts of the block, which hold one source and tile at a time.
    for (int32 bin = kt::thread_in_block(); bin < BINS; bin += BLOCK) counts[bin] = 0;
    kt::block_barrier();

    const int64 source = i / n_tiles, first = i % n_tiles * TILE;
    const int64 end = kt::lesser(first + TILE, n_vertices);
    const double bins_per_unit = kt::float_of(kt::load_constant(&scales[source].bins_per_unit));
    const int64 before = kt::load_constant(&scales[source].first_bin);
    int64 last = 0;
    uint32 equal = 0;

    // Equal bins in a row are counted in a register.
    const auto take = [&](weight_t value) {
      const ordered_t key = kt::to_ordered(value);
      if (!kt::is_finite<weight_t>(key) || key > limit_key) return;
      const double at = kt::widened(value) * bins_per_unit;
      int64 bin = static_cast<int64>(at);
      if (static_cast<double>(bin) > at) --bin;  // rounded down
      if (bin != last && equal) {
        kt::atomic_add(counts + (last - before), equal);
        equal = 0;
      }
      last = bin;
      ++equal;
    };

    kt::walk(distance + source * pitch, first, end, kt::float_of(kt::INFINITE), take);
    if (equal) kt::atomic_add(counts + (last - before), equal);
    kt::block_barrier();

    // Add the counts to those of the source.
    for (int32 bin = kt::thread_in_block(); bin < BINS; bin += BLOCK)
      if (counts[bin]) kt::atomic_add(bins + source * BINS + bin, static_cast<int64>(counts[bin]));
    kt::block_barrier();
  }
}
