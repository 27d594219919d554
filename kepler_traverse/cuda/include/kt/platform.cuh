// The whole surface of CUDA that kernels may touch; they use nothing else of it
// but __global__, __device__ and __launch_bounds__.
//
// Warp operations name their lanes (_sync with a mask): since Volta the lanes of
// a warp advance independently, and nothing here relies on lockstep.
// Loads and atomics on one address by several threads are relaxed: only the end
// of a launch orders them, and the kernels need no more.
#pragma once

#ifndef __CUDACC__
#include <simt.hpp>  // CUDA's names for a host compiler, with which the tests run the kernels
#endif

#define KT_DEVICE __device__ __forceinline__

namespace kt {

using int32 = int;
using int64 = long long;
using uint8 = unsigned char;
using uint32 = unsigned int;
using uint64 = unsigned long long;

constexpr int32 WARP = 32;

// Threads are counted in 64 bits: a grid may have more than 2^31 of them.
KT_DEVICE int64 thread_id() { return static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; }
KT_DEVICE int64 n_threads() { return static_cast<int64>(gridDim.x) * blockDim.x; }
KT_DEVICE int32 lane() { return static_cast<int32>(threadIdx.x % WARP); }
KT_DEVICE int64 warp_id() { return thread_id() / WARP; }
KT_DEVICE int64 n_warps() { return n_threads() / WARP; }

// Lanes that happen to run together here. Any subset is right, more are faster.
KT_DEVICE uint32 lanes_here() { return __activemask(); }
KT_DEVICE uint32 lanes_before() { return (1u << lane()) - 1u; }
KT_DEVICE int32 count_lanes(uint32 lanes) { return __popc(lanes); }
KT_DEVICE int32 first_lane(uint32 lanes) { return __ffs(static_cast<int32>(lanes)) - 1; }

template <typename T>
KT_DEVICE T broadcast(uint32 lanes, T value, int32 from) {
  return __shfl_sync(lanes, value, from);
}

// An array that no thread writes during the launch.
template <typename T>
KT_DEVICE T load_constant(const T* address) {
  return __ldg(address);
}

// A word that other threads write during the launch, where an old value does no
// harm; whoever calls these says why. Relaxed: not kept in a register, not served
// from this multiprocessor's own cache, and no order with other words.
template <typename T>
KT_DEVICE T racy_load(const T* address) {
  return *static_cast<const volatile T*>(address);
}

template <typename T>
KT_DEVICE void racy_store(T* address, T value) {
  *static_cast<volatile T*>(address) = value;
}

// Each atomic returns what stood there before.
KT_DEVICE int64 atomic_add(int64* address, int64 value) {
  return static_cast<int64>(atomicAdd(reinterpret_cast<uint64*>(address), static_cast<uint64>(value)));
}
KT_DEVICE int32 atomic_min(int32* address, int32 value) { return atomicMin(address, value); }
KT_DEVICE int64 atomic_min(int64* address, int64 value) { return atomicMin(address, value); }
KT_DEVICE uint32 atomic_min(uint32* address, uint32 value) { return atomicMin(address, value); }
KT_DEVICE uint64 atomic_min(uint64* address, uint64 value) { return atomicMin(address, value); }
KT_DEVICE int32 atomic_exchange(int32* address, int32 value) { return atomicExch(address, value); }
KT_DEVICE int32 compare_and_swap(int32* address, int32 expected, int32 value) {
  return atomicCAS(address, expected, value);
}

KT_DEVICE int32 bits_of(float value) { return __float_as_int(value); }
KT_DEVICE int64 bits_of(double value) { return __double_as_longlong(value); }
KT_DEVICE float float_of(int32 bits) { return __int_as_float(bits); }
KT_DEVICE double float_of(int64 bits) { return __longlong_as_double(bits); }

// Sums rounded to nearest that keep subnormal numbers. The compiler is always
// told -ftz=true, which would make 0 of them; PTX without .ftz is left alone.
KT_DEVICE float add_rounded(float a, float b) {
#ifdef __CUDACC__
  float sum;
  asm("add.rn.f32 %0, %1, %2;" : "=f"(sum) : "f"(a), "f"(b));
  return sum;
#else
  return a + b;
#endif
}
KT_DEVICE double add_rounded(double a, double b) {
#ifdef __CUDACC__
  double sum;
  asm("add.rn.f64 %0, %1, %2;" : "=d"(sum) : "d"(a), "d"(b));
  return sum;
#else
  return a + b;
#endif
}

}  // namespace kt
