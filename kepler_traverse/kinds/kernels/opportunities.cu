// Sums of vertex attributes within cutoffs, for several sources.
//
// The number of vertices alone decides the order of a sum of floats (kepler_traverse/kinds/opportunities.py), so that
// it has the same bits as on a CPU: reduction blocks of REDUCTION_BLOCK values in ascending order of the vertices are
// summed by halves, and so are the sums of the blocks. Vertices beyond a cutoff count as 0. Sums of integers are exact
// in any order: the host refuses attributes whose sum could exceed an int64.
//
//   opportunities_reduce_warp   a warp sums one reduction block of one source, for each attribute and cutoff
//   opportunities_fold_warp     reduces REDUCTION_BLOCK sums to one
//
//   sums   of shape (n_sources, n_attributes, n_cutoffs, reduction blocks), 64 bits each: integers, or bits of doubles
//
// Compile-time constants:
//   BLOCK             threads per block
//   REDUCTION_BLOCK   values per reduction block
//   HOP_BYTES         bytes per hop count; 0 if distances are weighted, of type weight_t
//   DECAY             0 none, 1 exponential, 2 linear, 3 gaussian; with one, all attributes are floats
#include <kt/decay.cuh>
#include <kt/row_reductions.cuh>
#include <kt/tight_edges.cuh>

namespace {

constexpr kt::distance_key BEYOND = HOP_BYTES ? 0x7fffffff : kt::INFINITE;  // no cutoff is so large

// The key of a distance; unreached hops, which are -1, are beyond all cutoffs.
KT_DEVICE kt::distance_key key_at(const kt::distance_t* distance) {
  const kt::distance_key key = kt::key_of_distance(kt::load_constant(distance));
  return HOP_BYTES && !kt::is_reached(key) ? BEYOND : key;
}

}  // namespace

// What the host passes (kinds/opportunities_gpu.py).
struct OpportunityArgs {
  const uint8* distance;
  int64 pitch;  // from the distances of one source to those of the next
  int64 n_vertices;
  int64 n_sources;
  const int64* bounds;  // of each cutoff the key of the largest distance within
  int64 n_cutoffs;
  const int64* values;  // of shape (n_attributes, n_vertices): integers, then bits of doubles
  int64 n_integers;
  int64 n_attributes;
  double parameter;  // of the decay
  double width;      // a second one, of a logistic decay
  int64* sums;
};

extern "C" __global__ void __launch_bounds__(BLOCK) opportunities_reduce_warp(const OpportunityArgs args) {
  const int64 n_reduction_blocks = kt::reduction_blocks_of(args.n_vertices);
  // Consecutive warps take the same vertices of several sources, so that attributes are read from a cache.
  for (int64 i = kt::warp_id(); i < args.n_sources * n_reduction_blocks; i += kt::n_warps()) {
    const int64 source = i % args.n_sources, reduction_block = i / args.n_sources;
    const int64 first = reduction_block * REDUCTION_BLOCK, end = kt::lesser(first + REDUCTION_BLOCK, args.n_vertices);
    const kt::distance_t* const distances =
        reinterpret_cast<const kt::distance_t*>(args.distance) + source * args.pitch;

    // Lane i loads the distances i, i + 32, ... of the block; `any` says whether a vertex of it counts.
    kt::distance_key keys[kt::VALUES_PER_LANE];
    const kt::distance_key largest = static_cast<kt::distance_key>(kt::load_constant(args.bounds + args.n_cutoffs - 1));
    bool any = false;
#pragma unroll
    for (int32 j = 0; j < kt::VALUES_PER_LANE; ++j) {
      const int64 v = first + j * WARP + kt::lane();
      keys[j] = v < end ? key_at(distances + v) : BEYOND;
      any = any || keys[j] <= largest;
    }
    any = kt::ballot(ALL_LANES, any) != 0;

    // For each attribute, load and weight its values, and then sum those within each cutoff.
    for (int64 a = 0; a < args.n_attributes; ++a) {
      int64* const sums = args.sums + (source * args.n_attributes + a) * args.n_cutoffs * n_reduction_blocks;
      const bool is_integer = a < args.n_integers;
      int64 words[kt::VALUES_PER_LANE];
#pragma unroll
      for (int32 j = 0; j < kt::VALUES_PER_LANE; ++j) {
        words[j] = 0;  // the bits of 0.0, too
        if (!any || keys[j] > largest) continue;
        const int64 v = first + j * WARP + kt::lane();
        words[j] = kt::load_constant(args.values + a * args.n_vertices + v);
        if constexpr (DECAY != kt::NO_DECAY) {
          const double d = kt::length_of(keys[j]);
          words[j] = kt::bits_of(kt::float_of(words[j]) * kt::Decay::weight_at(d, args.parameter, args.width));
        }
      }

      for (int64 c = 0; c < args.n_cutoffs; ++c) {
        const kt::distance_key bound = static_cast<kt::distance_key>(kt::load_constant(args.bounds + c));
        int64 word = 0;
        if (any && is_integer) {
          word = kt::folded_over_lanes(
              kt::folded<int64>([&](int32 j) -> int64 { return keys[j] <= bound ? words[j] : 0; }));
        } else if (any) {
          word = kt::bits_of(kt::folded_over_lanes(
              kt::folded<double>([&](int32 j) -> double { return keys[j] <= bound ? kt::float_of(words[j]) : 0.0; })));
        }
        if (kt::lane() == 0) sums[c * n_reduction_blocks + reduction_block] = word;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    opportunities_fold_warp(const int64* sums, int64 n_sums, int64 n_rows, int64 n_cutoffs, int64 n_integers,
                            int64 n_attributes, int64* folded_sums) {
  const int64 n_reduction_blocks = kt::reduction_blocks_of(n_sums);
  for (int64 i = kt::warp_id(); i < n_rows * n_reduction_blocks; i += kt::n_warps()) {
    const int64 row = i / n_reduction_blocks, first = i % n_reduction_blocks * REDUCTION_BLOCK;
    const auto word_at = [&](int32 j) -> int64 {
      const int64 at = first + j * WARP + kt::lane();
      return at < n_sums ? kt::load_constant(sums + row * n_sums + at) : 0;
    };

    // A row is an attribute and a cutoff of a source.
    int64 word;
    if (row / n_cutoffs % n_attributes < n_integers) {
      word = kt::folded_over_lanes(kt::folded<int64>(word_at));
    } else {
      word = kt::bits_of(
          kt::folded_over_lanes(kt::folded<double>([&](int32 j) -> double { return kt::float_of(word_at(j)); })));
    }
    if (kt::lane() == 0) folded_sums[i] = word;
  }
}
