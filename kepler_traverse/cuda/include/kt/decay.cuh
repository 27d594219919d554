// Weights that fall with the distance, of the very sums and products of cpu/opportunities.py.
//
// Compile-time constant:
//   DECAY   0 none, 1 exponential, 2 linear, 3 gaussian, 4 step, 5 logistic, 6 power
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

constexpr int32 NO_DECAY = 0, EXPONENTIAL = 1, LINEAR = 2, STEP = 4, LOGISTIC = 5, POWER = 6;

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

  // ln x for x > 1.
  KT_DEVICE static double logarithm(double x) {
    int32 n = 0;
    while (x > 1.4142135623730951) {
      x *= 0.5;
      ++n;
    }
    const double s = add_rounded(x, -1.0) / add_rounded(x, 1.0);
    const double t = s * s;
    double p = 1.0 / 23.0;
    p = add_rounded(p * t, 1.0 / 21.0);
    p = add_rounded(p * t, 1.0 / 19.0);
    p = add_rounded(p * t, 1.0 / 17.0);
    p = add_rounded(p * t, 1.0 / 15.0);
    p = add_rounded(p * t, 1.0 / 13.0);
    p = add_rounded(p * t, 1.0 / 11.0);
    p = add_rounded(p * t, 1.0 / 9.0);
    p = add_rounded(p * t, 1.0 / 7.0);
    p = add_rounded(p * t, 1.0 / 5.0);
    p = add_rounded(p * t, 1.0 / 3.0);
    p = add_rounded(p * t, 1.0);
    return add_rounded(static_cast<double>(n) * 0.6931471805599453, 2.0 * s * p);
  }

  // (1 + exp(-middle / width)) / (1 + exp((d - middle) / width)), which is 1 at d = 0.
  KT_DEVICE static double logistic(double d, double middle, double width) {
    const double at_zero = add_rounded(1.0, exponential(-(middle / width)));
    const double z = add_rounded(d, -middle) / width;
    if (z <= 0.0) return at_zero / add_rounded(1.0, exponential(z));
    const double small = exponential(-z);
    return at_zero * small / add_rounded(1.0, small);
  }

  // The weight at a distance of 0 or more; only a logistic decay has a width.
  KT_DEVICE static double weight_at(double d, double parameter, double width) {
    if constexpr (DECAY == LINEAR) {
      return d < parameter ? add_rounded(1.0, -(d / parameter)) : 0.0;
    } else if constexpr (DECAY == EXPONENTIAL) {
      return exponential(-(parameter * d));
    } else if constexpr (DECAY == STEP) {
      return d <= parameter ? 1.0 : 0.0;
    } else if constexpr (DECAY == LOGISTIC) {
      return logistic(d, parameter, width);
    } else if constexpr (DECAY == POWER) {
      return d > 1.0 ? exponential(-(parameter * logarithm(d))) : 1.0;
    } else {
      const double t = d / parameter;
      return exponential(-0.5 * (t * t));
    }
  }
};

}  // namespace kt
