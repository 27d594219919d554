// Figures of many rows of distances at once: how many vertices are reached, the nearest and the farthest of them, the
// sums of distances and of reciprocals of positive ones, edges; and how many distances lie in each bin of a histogram.
//
// A sum is added in an order that the number of vertices alone decides (kepler_traverse/distance_stats.py), so that it
// has the bits of the CPU's: a piece of PIECE values is folded by halves, the sums of the pieces likewise, until one is
// left. What is not reached counts as 0. A warp takes a piece: lane i holds the values at i, i + 32, i + 64, ..., folds
// them in its registers, and the lanes fold what they hold.
//
//   pieces   one record of FIGURES words a row and piece of its vertices
//   fold     records of pieces to records of PIECE times as many
//   bins     a block counts a stretch of a row in shared memory
//
//   record   bits of the two sums, vertices within the limit, the least and the largest of their distances as keys of
//            kt/float_order.cuh, edges of all vertices reached
#include <kt/float_order.cuh>

#include "row_reductions.cuh"

namespace {

using kt::ALL_LANES;
using kt::HELD;
using kt::int32;
using kt::int64;
using kt::larger;
using kt::lesser;
using kt::n_pieces_of;
using kt::uint32;
using kt::WARP;

using ordered_t = kt::key_of<weight_t>;

constexpr int64 MAX_KEY = kt::Key<double>::LOWEST_BITS;
constexpr int32 FIGURES = 6;

struct Sums {
  double total, harmonic;
  KT_DEVICE Sums with(Sums other) const {
    return {kt::add_rounded(total, other.total), kt::add_rounded(harmonic, other.harmonic)};
  }
};

// Fold the HELD values of a lane by halves: `of(i)` is the i-th. Written from the end, so that few sums wait for
// another.
template <int32 FIRST = 0, int32 STEP = 1, typename Of>
KT_DEVICE Sums folded(const Of& of) {
  if constexpr (STEP == HELD) {
    return of(FIRST);
  } else {
    const Sums one = folded<FIRST, 2 * STEP>(of);
    return one.with(folded<FIRST + STEP, 2 * STEP>(of));
  }
}

struct Record {
  Sums sums;
  int64 reached, lowest, highest, edges;
};

// Lane 0 writes what all lanes have; the sums it folds by halves, too.
KT_DEVICE void write_folded(Record mine, int64* record) {
  for (int32 half = WARP / 2; half > 0; half /= 2) {
    mine.sums = mine.sums.with(
        {kt::shuffle_down(ALL_LANES, mine.sums.total, half), kt::shuffle_down(ALL_LANES, mine.sums.harmonic, half)});
    mine.reached += kt::shuffle_down(ALL_LANES, mine.reached, half);
    mine.lowest = lesser(mine.lowest, kt::shuffle_down(ALL_LANES, mine.lowest, half));
    mine.highest = larger(mine.highest, kt::shuffle_down(ALL_LANES, mine.highest, half));
    mine.edges += kt::shuffle_down(ALL_LANES, mine.edges, half);
  }
  if (kt::lane() != 0) return;
  record[0] = kt::bits_of(mine.sums.total);
  record[1] = kt::bits_of(mine.sums.harmonic);
  record[2] = mine.reached;
  record[3] = mine.lowest;
  record[4] = mine.highest;
  record[5] = mine.edges;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_pieces_warp(const weight_t* __restrict__ distance, int64 pitch, int64 n_vertices, int64 n_rows,
                               weight_t limit, const offset_t* __restrict__ offsets, int64* records) {
  const int64 n_pieces = n_pieces_of(n_vertices);
  const ordered_t farthest = kt::to_ordered(limit);
  for (int64 i = kt::warp_id(); i < n_rows * n_pieces; i += kt::n_warps()) {
    const int64 first = i % n_pieces * PIECE, end = lesser(first + PIECE, n_vertices);
    const weight_t* const row = distance + i / n_pieces * pitch;
    weight_t values[HELD];
#pragma unroll
    for (int32 j = 0; j < HELD; ++j) {
      const int64 v = first + j * WARP + kt::lane();
      values[j] = v < end ? kt::load_constant(row + v) : kt::float_of(kt::Key<weight_t>::INFINITE);
    }
    uint32 bits = 0;
    int32 reached = 0;
    ordered_t lowest = kt::Key<weight_t>::LOWEST_BITS, highest = -lowest - 1;
#pragma unroll
    for (int32 j = 0; j < HELD; ++j) {
      const ordered_t key = kt::to_ordered(values[j]);
      if (!kt::is_finite<weight_t>(key)) continue;
      bits |= 1u << j;
      if (key > farthest) continue;
      ++reached;
      if (key < lowest) lowest = key;
      if (key > highest) highest = key;
    }
    const Sums sums = folded([&](int32 j) -> Sums {
      const ordered_t key = kt::to_ordered(values[j]);
      if (!kt::is_finite<weight_t>(key) || key > farthest) return {0.0, 0.0};
      const double apart = kt::widened(values[j]);
      return {apart, key > 0 ? 1.0 / apart : 0.0};
    });
    const int64 edges = kt::edges_of_piece(offsets, first, end, bits);
    const bool any = reached > 0;
    write_folded({sums, reached, any ? lowest : MAX_KEY, any ? highest : -MAX_KEY - 1, edges}, records + i * FIGURES);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_fold_warp(const int64* __restrict__ records, int64 n_records, int64 n_rows, int64* folded_records) {
  const int64 n_pieces = n_pieces_of(n_records);
  for (int64 i = kt::warp_id(); i < n_rows * n_pieces; i += kt::n_warps()) {
    const int64 first = i % n_pieces * PIECE;
    const int64* const row = records + i / n_pieces * n_records * FIGURES;
    Record mine{{0.0, 0.0}, 0, MAX_KEY, -MAX_KEY - 1, 0};
    mine.sums = folded([&](int32 j) -> Sums {
      const int64 at = first + j * WARP + kt::lane();
      if (at >= n_records) return {0.0, 0.0};
      const int64* const record = row + at * FIGURES;
      mine.reached += kt::load_constant(record + 2);
      mine.lowest = lesser(mine.lowest, kt::load_constant(record + 3));
      mine.highest = larger(mine.highest, kt::load_constant(record + 4));
      mine.edges += kt::load_constant(record + 5);
      return {kt::float_of(kt::load_constant(record)), kt::float_of(kt::load_constant(record + 1))};
    });
    write_folded(mine, folded_records + i * FIGURES);
  }
}

// A row's scale is the bits of the number of bins a unit, a power of two, and how many bins lie before its first.
// Neighbours are at about the same distance: a thread counts equal ones first, so that few meet in a word.
extern "C" __global__ void __launch_bounds__(BLOCK)
    distance_stats_bins(const weight_t* __restrict__ distance, int64 pitch, int64 n_vertices, int64 n_rows,
                        weight_t limit, const int64* __restrict__ scales, int64* bins) {
  KT_SHARED(uint32, counts, [BINS]);
  const int64 n_stretches = (n_vertices + STRETCH - 1) / STRETCH;
  const ordered_t farthest = kt::to_ordered(limit);
  for (int64 i = kt::block_id(); i < n_rows * n_stretches; i += kt::n_blocks()) {
    for (int32 bin = kt::thread_in_block(); bin < BINS; bin += BLOCK) counts[bin] = 0;
    kt::block_barrier();
    const int64 row = i / n_stretches, first = i % n_stretches * STRETCH, end = lesser(first + STRETCH, n_vertices);
    const double bins_per_unit = kt::float_of(kt::load_constant(scales + 2 * row));
    const int64 before = kt::load_constant(scales + 2 * row + 1);
    int64 last = 0;
    uint32 equal = 0;
    const auto take = [&](weight_t value) {
      const ordered_t key = kt::to_ordered(value);
      if (!kt::is_finite<weight_t>(key) || key > farthest) return;
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
    kt::walk(distance + row * pitch, first, end, kt::float_of(kt::Key<weight_t>::INFINITE), take);
    if (equal) kt::atomic_add(counts + (last - before), equal);
    kt::block_barrier();
    for (int32 bin = kt::thread_in_block(); bin < BINS; bin += BLOCK)
      if (counts[bin]) kt::atomic_add(bins + row * BINS + bin, static_cast<int64>(counts[bin]));
    kt::block_barrier();
  }
}
