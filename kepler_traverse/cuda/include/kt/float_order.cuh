// Keys: floats as integers of the same width and in the same order.
//
// The bits of floats, read as signed integers, ascend for non-negative floats and descend for
// negative ones. Inverting all bits but the sign of the negative ones corrects their order. The keys
// of non-negative floats are their bits. An integer atomic minimum is therefore a minimum of floats,
// also of negative and subnormal ones. Comparing keys is exact, whereas -ftz=true would take
// subnormals for zero. -0.0 would be less than 0.0, but graphs hold no such weight, and sums produce
// none.
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

template <typename Integer, Integer INFINITE_KEY, Integer LOWEST>
struct KeyOf {
  using type = Integer;
  static constexpr Integer INFINITE = INFINITE_KEY, LOWEST_BITS = LOWEST;
};
template <typename Float>
struct Key;
template <>
struct Key<float> : KeyOf<int32, 0x7f800000, 0x7fffffff> {};
template <>
struct Key<double> : KeyOf<int64, 0x7ff0000000000000, 0x7fffffffffffffff> {};
template <>  // weights beyond 2^53 are int64, and their own keys
struct Key<int64> : KeyOf<int64, 0x7fffffffffffffff, 0> {};

template <typename Float>
using key_of = typename Key<Float>::type;
constexpr key_of<weight_t> INFINITE = Key<weight_t>::INFINITE;

// Bits of a value, and back; those of an integer are itself.
KT_DEVICE int64 bits_of(int64 value) { return value; }

template <typename Float>
KT_DEVICE Float of_bits(key_of<Float> bits) {
  return float_of(bits);
}
template <>
KT_DEVICE int64 of_bits<int64>(int64 bits) {
  return bits;
}

// The key of a value, and back.
template <typename Float>
KT_DEVICE key_of<Float> to_ordered(Float value) {
  const key_of<Float> bits = bits_of(value);
  return bits >= 0 ? bits : bits ^ Key<Float>::LOWEST_BITS;
}

template <typename Float>
KT_DEVICE Float from_ordered(key_of<Float> key) {
  return of_bits<Float>(key >= 0 ? key : key ^ Key<Float>::LOWEST_BITS);
}

// Strictly between the two infinities.
template <typename Float>
KT_DEVICE bool is_finite(key_of<Float> key) {
  return key < Key<Float>::INFINITE && key > (~Key<Float>::INFINITE);
}

}  // namespace kt

using ordered_t = kt::key_of<weight_t>;
