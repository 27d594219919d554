// Distances of pairs by hub labels: the smallest sum over the hubs that two labels share.
//
//   label_pairs_warp   a warp answers one pair: its lanes take the hubs of the source in turn, and search
//                      each in the label of the target, whose hubs ascend
//
// Compile-time constants:
//   BLOCK   threads per block
#include <kt/csr.cuh>
#include <kt/float_order.cuh>
#include <kt/scan.cuh>

// What the host passes (hub_labels/on_gpu.py). Labels are in compressed sparse rows by rank.
struct LabelArgs {
  const int64* offsets;  // distances from each rank to its hubs
  const int32* hubs;
  const ordered_t* distances;
  const int64* offsets_in;  // distances to each rank from its hubs
  const int32* hubs_in;
  const ordered_t* distances_in;
  const int32* rank;  // of each vertex number
  const int64* sources;
  const int64* targets;
  int64 n_pairs;
  int64 unreached;
  int64* sums;
};

extern "C" __global__ void __launch_bounds__(BLOCK) label_pairs_warp(const LabelArgs args) {
  for (int64 i = kt::warp_id(); i < args.n_pairs; i += kt::n_warps()) {
    const int64 source = kt::load_constant(args.rank + kt::load_constant(args.sources + i));
    const int64 target = kt::load_constant(args.rank + kt::load_constant(args.targets + i));
    const int64 end = kt::load_constant(args.offsets + source + 1);
    const int64 end_in = kt::load_constant(args.offsets_in + target + 1);
    int64 first = kt::load_constant(args.offsets_in + target);
    int64 best = args.unreached;
    for (int64 at = kt::load_constant(args.offsets + source) + kt::lane(); at < end; at += WARP) {
      const int32 hub = kt::load_constant(args.hubs + at);
      // The hubs of a lane ascend, too: what lies before this one is not looked at again.
      first = kt::first_where(first, end_in, [&](int64 j) { return kt::load_constant(args.hubs_in + j) >= hub; });
      if (first == end_in) break;
      if (kt::load_constant(args.hubs_in + first) != hub) continue;
      const int64 sum = static_cast<int64>(kt::load_constant(args.distances + at)) +
                        static_cast<int64>(kt::load_constant(args.distances_in + first));
      best = sum < best ? sum : best;
    }
    best = -kt::largest_of_all(-best);
    if (kt::lane() == 0) args.sums[i] = best;
  }
}
