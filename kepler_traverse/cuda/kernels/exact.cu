// Whether any finite distance has an absolute value of `bound` or more, so that the type may
// have rounded it.
//
// Distances are compared as ordered integers (kt/float_order.cuh). One flag: any thread that finds
// such a distance stores 1, and no thread stores anything else.
//
//   threads   one per distance, striding over the grid
//   reads     every distance once, 4 or 8 bytes    writes   at most the flag
#include <kt/float_order.cuh>

extern "C" __global__ void __launch_bounds__(BLOCK)
    exact_any_beyond(const weight_t* distance, int64 n_distances, weight_t bound, int32* found) {
  const ordered_t high = kt::to_ordered(bound), low = ~high;
  bool is_beyond = false;
  for (int64 i = kt::thread_id(); i < n_distances; i += kt::n_threads()) {
    const ordered_t key = kt::to_ordered(kt::load_streaming(distance + i));
    is_beyond |= kt::is_finite<weight_t>(key) && (key >= high || key <= low);  // NaN is not finite
  }
  if (is_beyond) kt::racy_store(found, 1);
}
