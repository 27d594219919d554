// Integers of a type that the host names at run time, so that one compiled kernel serves all types.
//
// kind is the width in bytes, negative for signed types. Values are handled as 64 bits: differences
// of them are right for signed and unsigned types alike.
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

// The i-th of some integers.
KT_DEVICE int64 load_integer(const uint8* values, int64 i, int32 kind) {
  switch (kind) {
    case -1:
      return load_constant(reinterpret_cast<const signed char*>(values) + i);
    case -2:
      return load_constant(reinterpret_cast<const short*>(values) + i);
    case -4:
      return load_constant(reinterpret_cast<const int32*>(values) + i);
    case 1:
      return load_constant(values + i);
    case 2:
      return load_constant(reinterpret_cast<const unsigned short*>(values) + i);
    case 4:
      return load_constant(reinterpret_cast<const uint32*>(values) + i);
    default:
      return load_constant(reinterpret_cast<const int64*>(values) + i);
  }
}

// Stores the i-th of some integers, of which only the lower bytes remain.
KT_DEVICE void store_integer(uint8* values, int64 i, int32 kind, int64 value) {
  switch (kind < 0 ? -kind : kind) {
    case 1:
      values[i] = static_cast<uint8>(value);
      break;
    case 2:
      reinterpret_cast<unsigned short*>(values)[i] = static_cast<unsigned short>(value);
      break;
    case 4:
      reinterpret_cast<uint32*>(values)[i] = static_cast<uint32>(value);
      break;
    default:
      reinterpret_cast<int64*>(values)[i] = value;
  }
}

// Unsigned numbers in the order of the values: 8 unsigned bytes sort as they are, all other types as int64.
KT_DEVICE uint64 sort_key(int64 value, int32 kind) {
  return static_cast<uint64>(value) ^ (kind == 8 ? 0ull : 1ull << 63);
}

}  // namespace kt
