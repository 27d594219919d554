// Integer types by their width in bytes.
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

template <int BYTES>
struct Unsigned;
template <>
struct Unsigned<4> {
  using type = uint32;
};
template <>
struct Unsigned<8> {
  using type = uint64;
};

template <int BYTES>
struct Signed;
template <>
struct Signed<1> {
  using type = signed char;
};
template <>
struct Signed<2> {
  using type = short;
};
template <>
struct Signed<4> {
  using type = int32;
};
template <>
struct Signed<8> {
  using type = int64;
};

}  // namespace kt
