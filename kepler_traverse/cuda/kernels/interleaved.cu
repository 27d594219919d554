// Interleaved distances: lines of integers, one line per vertex, with the sums from all sources side
// by side. Conversion into one row per source, statistics, and certificates. See
// kepler_traverse/cuda/interleaved.py.
//
// Sums of `bound` or more mean unreached. A distance is a sum times a power of two, the unit.
//
//   interleaved_to_rows          a block transposes TILE lines of 32 sources in shared memory
//   interleaved_stats            the records of distance_stats.cu, with the same bits: a thread reduces
//                                REDUCTION_BLOCK vertices of one source, in the same order
//   interleaved_weights          weights of edges as multiples of the unit
//   interleaved_check_warp       counts the vertices and sources that violate a rule of a certificate:
//                                a distance is the smallest over the edges that lead to the vertex. Weights
//                                are positive, so that no cycle of edges explains its own distances
//
// Compile-time constants:
//   BLOCK             threads per block
//   REDUCTION_BLOCK   values per reduction block
//   RECORD_WORDS      64-bit words per record
//   TILE              lines of 32-bit sums that a block transposes at once, and half as many of 64-bit ones
//   FLOAT_BYTES       bytes of a distance in a row
//   WORDS             32-bit words of a line per thread of a certificate: 1, 2 or 4
#include <kt/float_order.cuh>
#include <kt/row_reductions.cuh>

namespace {

using unsigned_t = kt::Unsigned<sizeof(ordered_t)>::type;

constexpr ordered_t UNREACHED = static_cast<ordered_t>(1) << (8 * sizeof(ordered_t) - 2);

template <int32 BYTES>
struct FloatOf {
  using type = float;
};
template <>
struct FloatOf<8> {
  using type = double;
};
using real_t = FloatOf<FLOAT_BYTES>::type;

// The unit is a power of two, so that the product is exact, and only the conversion of a large sum rounds.
KT_DEVICE real_t distance_of(ordered_t sum, double unit) {
  return static_cast<real_t>(sum) * static_cast<real_t>(unit);
}

}  // namespace

struct RowsArgs {
  const ordered_t* lines;
  int64 pitch;                       // sums per line
  int64 first;                       // the first source
  KT_NULLABLE const int64* columns;  // lines of the columns. Null: column i is line i
  int64 n_columns;
  int64 n_sources;
  ordered_t bound;
  double unit;
  int64 row_pitch;  // distances from one row to the next
  uint8* rows;      // of FLOAT_BYTES per distance
};

extern "C" __global__ void __launch_bounds__(BLOCK) interleaved_to_rows(const RowsArgs args) {
  // A tile has a row per source; one word more per row keeps its columns in different banks.
  constexpr int32 COLUMNS = TILE * 4 / sizeof(ordered_t);
  KT_SHARED(ordered_t, tile, [WARP * (COLUMNS + 1)]);
  real_t* const rows = reinterpret_cast<real_t*>(args.rows);
  const real_t infinite = static_cast<real_t>(kt::float_of(0x7f800000));
  const int64 n_chunks = (args.n_sources + WARP - 1) / WARP;
  const int64 n_tiles = (args.n_columns + COLUMNS - 1) / COLUMNS;
  for (int64 i = kt::block_id(); i < n_tiles * n_chunks; i += kt::n_blocks()) {
    // Consecutive blocks write consecutive columns of the same rows.
    const int64 source = i / n_tiles * WARP, column = i % n_tiles * COLUMNS;
    const int32 n_here = static_cast<int32>(args.n_columns - column < COLUMNS ? args.n_columns - column : COLUMNS);
    const int32 n_lanes = static_cast<int32>(args.n_sources - source < WARP ? args.n_sources - source : WARP);
    const ordered_t* const lines = args.lines + args.first + source + kt::lane();

    kt::block_barrier();
    if (kt::lane() < n_lanes) {
#pragma unroll 8
      for (int32 j = kt::warp_in_block(); j < n_here; j += BLOCK / WARP) {
        const int64 line = args.columns ? kt::load_constant(args.columns + column + j) : column + j;
        tile[kt::lane() * (COLUMNS + 1) + j] = kt::load_streaming(lines + line * args.pitch);
      }
    }

    kt::block_barrier();
    // A warp writes a row, so that its stores are adjacent.
    for (int32 row = kt::warp_in_block(); row < n_lanes; row += BLOCK / WARP) {
      real_t* const to = rows + (source + row) * args.row_pitch + column;
#pragma unroll
      for (int32 at = kt::lane(); at < COLUMNS; at += WARP) {
        if (at >= n_here) continue;
        const ordered_t sum = tile[row * (COLUMNS + 1) + at];
        kt::store_streaming(to + at, sum < args.bound ? distance_of(sum, args.unit) : infinite);
      }
    }
  }
}

struct StatsArgs {
  const ordered_t* lines;
  int64 pitch;
  int64 first;
  int64 n_vertices;
  int64 n_sources;
  ordered_t bound;
  ordered_t limit;  // less than the bound; vertices beyond it are left out
  double unit;
  const offset_t* offsets;  // of the graph
  int64* records;
};

namespace {

constexpr int32 VALUES = kt::VALUES_PER_LANE;  // a group has the values that a lane has in distance_stats.cu
static_assert(VALUES == WARP && RECORD_WORDS == kt::DistanceRecord::N_WORDS,
              "groups are summed by halves as lanes are");

KT_DEVICE int64 key_of(ordered_t sum, double unit) { return kt::bits_of(distance_of(sum, unit)); }

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) interleaved_stats(const StatsArgs args) {
  constexpr int64 MAX_KEY = kt::Key<double>::LOWEST_BITS;
  const int64 n_blocks = kt::reduction_blocks_of(args.n_vertices);
  const int64 n_chunks = (args.n_sources + BLOCK - 1) / BLOCK;
  for (int64 i = kt::block_id(); i < n_blocks * n_chunks; i += kt::n_blocks()) {
    // One reduction block, and one source per thread.
    const int64 first = i / n_chunks * REDUCTION_BLOCK;
    const int32 n_here =
        static_cast<int32>(args.n_vertices - first < REDUCTION_BLOCK ? args.n_vertices - first : REDUCTION_BLOCK);
    const int64 source = i % n_chunks * BLOCK + kt::thread_in_block();
    if (source >= args.n_sources) continue;
    const ordered_t* const lines = args.lines + first * args.pitch + args.first + source;

    // pending[b] is the sum of 2^b groups that waits for the next such sum.
    kt::DistanceSums pending[5], all = {0.0, 0.0};
    int32 reached = 0, beyond = 0;
    ordered_t lowest = UNREACHED, highest = 0;
    // Groups in the order of their numbers with reversed bits, so that sums by halves need few pending ones.
    for (int32 t = 0; t < WARP; ++t) {
      const int32 group = (t & 1) << 4 | (t & 2) << 2 | (t & 4) | (t & 8) >> 2 | (t & 16) >> 4;
      // Load the values of a group together, then take those within the limit, then sum them by halves.
      ordered_t values[VALUES];
#pragma unroll
      for (int32 j = 0; j < VALUES; ++j) {
        const int32 v = j * WARP + group;
        values[j] = v < n_here ? kt::load_streaming(lines + v * args.pitch) : UNREACHED;
      }
#pragma unroll
      for (int32 j = 0; j < VALUES; ++j) {
        const bool counts = values[j] <= args.limit;
        beyond += !counts && values[j] < args.bound;
        reached += counts;
        if (values[j] < lowest) lowest = values[j];
        if (counts && values[j] > highest) highest = values[j];
        if (!counts) values[j] = UNREACHED;
      }

      kt::DistanceSums sums = kt::folded<kt::DistanceSums>([&](int32 j) -> kt::DistanceSums {
        if (values[j] == UNREACHED) return {0.0, 0.0};
        const double value = static_cast<double>(values[j]) * args.unit;
        return {value, values[j] > 0 ? 1.0 / value : 0.0};
      });

      // Group t completes as many sums as t ends in bits that are set.
      bool is_pending = false;
#pragma unroll
      for (int32 bit = 0; bit < 5; ++bit) {
        if (is_pending) continue;
        if (t >> bit & 1) {
          sums = kt::sum_of(pending[bit], sums);
        } else {
          pending[bit] = sums;
          is_pending = true;
        }
      }
      all = sums;
    }

    // Most often all vertices have a distance; then two offsets suffice.
    int64 edges = kt::load_constant(args.offsets + first + n_here) - kt::load_constant(args.offsets + first);
    if (reached + beyond < n_here) {
      edges = 0;
      for (int32 j = 0; j < n_here; ++j)
        if (kt::load_constant(lines + j * args.pitch) < args.bound)
          edges += kt::load_constant(args.offsets + first + j + 1) - kt::load_constant(args.offsets + first + j);
    }

    int64* const record = args.records + (source * n_blocks + i / n_chunks) * RECORD_WORDS;
    kt::DistanceRecord{all, reached, reached ? key_of(lowest, args.unit) : MAX_KEY,
                       reached ? key_of(highest, args.unit) : -MAX_KEY - 1, edges}
        .store(record);
  }
}

struct WeightsArgs {
  const uint8* weights;  // of FLOAT_BYTES each
  int64 n_edges;
  double unit;
  ordered_t* in_units;  // UNREACHED for those that no path takes
  int64* misfits;       // weights that are no positive multiple of the unit
};

extern "C" __global__ void __launch_bounds__(BLOCK) interleaved_weights(const WeightsArgs args) {
  const real_t* const weights = reinterpret_cast<const real_t*>(args.weights);
  int64 misfits = 0;
  for (int64 e = kt::thread_id(); e < args.n_edges; e += kt::n_threads()) {
    const double units = kt::widened(kt::load_constant(weights + e)) / args.unit;
    const bool is_long = units >= static_cast<double>(UNREACHED);
    const ordered_t rounded = is_long ? UNREACHED : static_cast<ordered_t>(units);
    if (!(units >= 1.0) || (!is_long && static_cast<double>(rounded) != units)) ++misfits;
    args.in_units[e] = rounded;
  }
  if (misfits) kt::atomic_add(args.misfits, misfits);
}

struct CheckArgs {
  const offset_t* offsets;  // of the reverse graph
  const vertex_t* neighbors;
  const ordered_t* weights;  // multiples of the unit
  int64 n_vertices;
  int64 pitch;
  const ordered_t* lines;
  const int64* sources;
  int64 n_sources;
  ordered_t bound;
  ordered_t limit;
  int32 chunks_per_item;  // parts of a line that a warp takes; a divisor of their number
  int64* violations;
};

extern "C" __global__ void __launch_bounds__(BLOCK) interleaved_check_warp(const CheckArgs args) {
  constexpr int32 SUMS = 4 * WORDS / sizeof(ordered_t);
  constexpr int32 IN_FLIGHT = 4;
  union Vector {
    uint32 words[WORDS];
    ordered_t sums[SUMS];
  };
  // Each source is at 0.
  int64 violations = 0;
  for (int64 i = kt::thread_id(); i < args.n_sources; i += kt::n_threads())
    if (kt::load_constant(args.lines + kt::load_constant(args.sources + i) * args.pitch + i) != 0) ++violations;

  // Each sum is the smallest over the edges into the vertex; a warp takes a share of the line of one vertex.
  const int64 n_shares = args.pitch / (WARP * SUMS) / args.chunks_per_item;
  for (int64 item = kt::warp_id(); item < args.n_vertices * n_shares; item += kt::n_warps()) {
    const int64 v = item / n_shares;
    const offset_t begin = kt::load_constant(args.offsets + v);
    const int32 n_edges = static_cast<int32>(kt::load_constant(args.offsets + v + 1) - begin);
    vertex_t near_vertices[IN_FLIGHT];
    ordered_t weights[IN_FLIGHT];
#pragma unroll
    for (int32 j = 0; j < IN_FLIGHT; ++j) {
      near_vertices[j] = j < n_edges ? kt::load_constant(args.neighbors + begin + j) : static_cast<vertex_t>(0);
      weights[j] = j < n_edges ? kt::load_constant(args.weights + begin + j) : static_cast<ordered_t>(0);
    }

    int64 first = (item % n_shares * args.chunks_per_item * WARP + kt::lane()) * SUMS;
    for (int32 chunk = 0; chunk < args.chunks_per_item; ++chunk, first += WARP * SUMS) {
      const auto load = [&](int64 of, Vector& line) {
        kt::load_constant_words(reinterpret_cast<const uint32*>(args.lines + of * args.pitch + first), line.words);
      };
      // Unsigned, since neither a wrong sum nor UNREACHED plus a weight may wrap around.
      const auto relax = [&](Vector& best, const Vector& near, ordered_t weight) {
#pragma unroll
        for (int32 i = 0; i < SUMS; ++i) {
          const unsigned_t through = static_cast<unsigned_t>(near.sums[i]) + static_cast<unsigned_t>(weight);
          if (through < static_cast<unsigned_t>(best.sums[i])) best.sums[i] = static_cast<ordered_t>(through);
        }
      };

      // Load the lines of the first neighbors together, and then of one after another.
      Vector here, best, near[IN_FLIGHT];
      load(v, here);
#pragma unroll
      for (int32 j = 0; j < IN_FLIGHT; ++j)
        if (j < n_edges) load(near_vertices[j], near[j]);
#pragma unroll
      for (int32 i = 0; i < SUMS; ++i) best.sums[i] = UNREACHED;
#pragma unroll
      for (int32 j = 0; j < IN_FLIGHT; ++j)
        if (j < n_edges) relax(best, near[j], weights[j]);
      for (int32 j = IN_FLIGHT; j < n_edges; ++j) {
        load(kt::load_constant(args.neighbors + begin + j), near[0]);
        relax(best, near[0], kt::load_constant(args.weights + begin + j));
      }

      // Compare, but for lanes beyond the last source; what is beyond the limit need not be equal.
#pragma unroll
      for (int32 i = 0; i < SUMS; ++i) {
        const ordered_t mine = here.sums[i] < args.bound ? here.sums[i] : UNREACHED;
        if (mine == best.sums[i] || first + i >= args.n_sources) continue;
        const bool is_source = kt::load_constant(args.sources + first + i) == v;
        if (is_source ? mine != 0 : mine < best.sums[i] || best.sums[i] <= args.limit) ++violations;
      }
    }
  }
  if (violations) kt::atomic_add(args.violations, violations);
}
