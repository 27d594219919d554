// Exact sums: 128-bit integers in units that the host chooses, as a lower word and a signed upper word.
//
// The final value of a sum is the same in any order of the additions, so atomics give equal bits in every run, batch
// size and number of threads. Arithmetic is modulo 2^128, so a negative number is its two's complement.
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

struct Exact {
  uint64 low = 0;
  int64 high = 0;
};

// A finite number in units of 2^exponent, rounded toward zero or half to even. It must be below 2^(126 + exponent).
KT_DEVICE Exact exact_of(double value, int32 exponent, bool half_to_even = false) {
  const int64 bits = bits_of(value);
  const int32 biased = static_cast<int32>(bits >> 52 & 0x7ff);
  const uint64 fraction = static_cast<uint64>(bits) & 0xfffffffffffffULL;
  const uint64 mantissa = biased ? fraction | 1ULL << 52 : fraction;
  const int32 shift = (biased ? biased : 1) - 1075 - exponent;

  // Shift the mantissa to the unit, into two words.
  uint64 low = 0, high = 0;
  if (shift <= 0) {
    low = shift > -64 ? mantissa >> -shift : 0;
    // Numbers have 53 bits, so those of 64 places below the unit are nearer to 0.
    const uint64 rest = half_to_even && shift < 0 && shift > -64 ? mantissa << (64 + shift) : 0, half = 1ULL << 63;
    low += rest > half || (rest == half && (low & 1));
  } else if (shift < 64) {
    low = mantissa << shift;
    high = mantissa >> (64 - shift);
  } else {
    high = mantissa << (shift - 64);
  }

  if (bits < 0) {
    low = ~low + 1;
    high = ~high + (low == 0);
  }
  return {low, static_cast<int64>(high)};
}

// Two atomics, or one where the number and the carry do not reach the upper word.
KT_DEVICE void add_exactly(uint64* low, int64* high, Exact number) {
  uint64 carried = static_cast<uint64>(number.high);
  if (number.low) {
    const uint64 before = atomic_add(low, number.low);
    carried += before + number.low < before;
  }
  if (carried) atomic_add(high, static_cast<int64>(carried));
}

// The sum over all lanes of a warp, in every lane: of 27 bits at a time, since 32 such numbers have at most 32 bits.
KT_DEVICE Exact sum_of_lanes(Exact mine) {
  constexpr uint64 LOW_27 = (1ULL << 27) - 1;
  const uint64 up = static_cast<uint64>(mine.high);
  const auto sum = [](uint64 bits) -> uint64 { return reduce_add(ALL_LANES, static_cast<uint32>(bits)); };
  const uint64 a = sum(mine.low & LOW_27), b = sum(mine.low >> 27 & LOW_27),
               c = sum((mine.low >> 54 | up << 10) & LOW_27);
  const uint64 d = sum(up >> 17 & LOW_27), e = sum(up >> 44);
  uint64 low = a + (b << 27);
  uint64 high = (c >> 10) + (d << 17) + (e << 44);
  low += c << 54;
  high += low < c << 54;
  return {low, static_cast<int64>(high)};
}

}  // namespace kt
