// Exact sums of doubles: of a warp, added to one of two sums per warp by one lane.
#include <kt/exact_sum.cuh>

extern "C" __global__ void exact_sums(const double* values, kt::int32 exponent, kt::int32 half_to_even, kt::uint64* low,
                                      kt::int64* high) {
  const kt::Exact mine = kt::exact_of(values[kt::thread_id()], exponent, half_to_even != 0),
                  of_warp = kt::sum_of_lanes(mine);
  kt::add_exactly(low, high, mine);
  if (kt::lane() == 5) kt::add_exactly(low + 1, high + 1, of_warp);
}
