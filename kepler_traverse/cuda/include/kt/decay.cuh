// Weights that fall with the distance, of the very sums and products of cpu/opportunities.py.
//
// Compile-time constant:
//   DECAY   0 none, 1 exponential, 2 linear, 3 gaussian
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

constexpr int32 NO_DECAY = 0, EXPONENTIAL = 1, LINEAR = 2;

// Members, of which a variant may use none.
struct Decay {
  // exp(x) for x <= 0.
  KT_DEVICE static double exponential(double x) {
    if (!(x > -746.0)) return 0.0;
    const double at = add_rounded(x * 1.4426950408889634, 0.5);
    int64 n = static_cast<int64>(at);
    if (static_cast<double>(n) > at) --n;  // rounded down
    const double whole = static_cast<double>(n);
    const double r =
        add_rounded(add_rounded(x, -(whole * 6.93147180369123816490e-01)), -(whole * 1.90821492927058770002e-10));
    double p = 1.0 / 6227020800.0;
    p = add_rounded(p * r, 1.0 / 479001600.0);
    p = add_rounded(p * r, 1.0 / 39916800.0);
    p = add_rounded(p * r, 1.0 / 3628800.0);
    p = add_rounded(p * r, 1.0 / 362880.0);
    p = add_rounded(p * r, 1.0 / 40320.0);
    p = add_rounded(p * r, 1.0 / 5040.0);
    p = add_rounded(p * r, 1.0 / 720.0);
    p = add_rounded(p * r, 1.0 / 120.0);
    p = add_rounded(p * r, 1.0 / 24.0);
    p = add_rounded(p * r, 1.0 / 6.0);
    p = add_rounded(p * r, 0.5);
    p = add_rounded(p * r, 1.0);
    p = add_rounded(p * r, 1.0);
    const int64 half = -((1 - n) / 2);  // rounded down, as n is not above 0
    return p * float_of((half + 1023) << 52) * float_of((n - half + 1023) << 52);
  }

  KT_DEVICE static double weight_at(double d, double parameter) {
    if constexpr (DECAY == LINEAR) {
      return d < parameter ? add_rounded(1.0, -(d / parameter)) : 0.0;
    } else if constexpr (DECAY == EXPONENTIAL) {
      return exponential(-(parameter * d));
    } else {
      const double t = d / parameter;
      return exponential(-0.5 * (t * t));
    }
  }
};

}  // namespace kt
