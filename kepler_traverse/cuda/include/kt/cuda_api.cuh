// All of CUDA that kernels use, together with memory_access.cuh and cluster.cuh. Of CUDA's own names they use only
// __global__, __device__ and __launch_bounds__.
//
// Warp operations name their lanes (_sync with a mask): since Volta the lanes of
// a warp advance independently, and nothing here relies on lockstep.
// Loads and atomics on one address by several threads are relaxed: barriers and
// the end of a launch order them, shuffles and votes do not.
#pragma once

#ifndef __CUDACC__
#include <simt.hpp>  // CUDA's names for a host compiler, with which the tests run the kernels
#endif

#define KT_DEVICE __device__ __forceinline__

// Before a field of an argument struct: a pointer that may be null. The host reads it (cuda/kernel_spec.py).
#define KT_NULLABLE

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
KT_DEVICE int32 block_id() { return static_cast<int32>(blockIdx.x); }
KT_DEVICE int32 n_blocks() { return static_cast<int32>(gridDim.x); }
KT_DEVICE int32 thread_in_block() { return static_cast<int32>(threadIdx.x); }
KT_DEVICE int32 warp_in_block() { return thread_in_block() / WARP; }

// Shared memory of a block: KT_SHARED(int32, tile, [256]) declares an array, and
// KT_DYNAMIC_SHARED(uint64, table) a pointer to the memory that the launch requests.
#ifdef __CUDACC__
#define KT_SHARED(type, name, extent) __shared__ type name extent
#define KT_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char kt_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(kt_dynamic_shared)
#else
#define KT_SHARED(type, name, extent) SIMT_SHARED(type, name, extent)
#define KT_DYNAMIC_SHARED(type, name) SIMT_DYNAMIC_SHARED(type, name)
#endif

// Barriers of a block: every thread of it calls them, and then sees all earlier
// writes of the block. The counting forms also return for how many threads the
// predicate is true. On the host they take their source line as well, so that the
// harness can distinguish barriers.
#ifdef __CUDACC__
KT_DEVICE void block_barrier() { __syncthreads(); }
KT_DEVICE int32 block_count(bool predicate) { return __syncthreads_count(predicate); }
KT_DEVICE bool block_any(bool predicate) { return __syncthreads_or(predicate) != 0; }
KT_DEVICE bool block_all(bool predicate) { return __syncthreads_and(predicate) != 0; }
#else
KT_DEVICE void block_barrier(int line = __builtin_LINE()) { __syncthreads(line); }
KT_DEVICE int32 block_count(bool predicate, int line = __builtin_LINE()) {
  return __syncthreads_count(predicate, line);
}
KT_DEVICE bool block_any(bool predicate, int line = __builtin_LINE()) { return __syncthreads_or(predicate, line) != 0; }
KT_DEVICE bool block_all(bool predicate, int line = __builtin_LINE()) {
  return __syncthreads_and(predicate, line) != 0;
}
#endif

// A thread that sees a later write of this thread also sees its earlier ones.
KT_DEVICE void fence() { __threadfence(); }

// The lanes that run together here. The result is correct for any subset and faster for a large one.
KT_DEVICE uint32 lanes_here() { return __activemask(); }
KT_DEVICE uint32 lanes_before() { return (1u << lane()) - 1u; }
KT_DEVICE int32 count_lanes(uint32 lanes) { return __popc(lanes); }
KT_DEVICE int32 first_lane(uint32 lanes) { return __ffs(static_cast<int32>(lanes)) - 1; }

// Collectives of a warp: every lane of the mask calls them. A shuffle returns the value of another lane, with `width`
// of a lane in the same group of so many.
constexpr uint32 ALL_LANES = 0xffffffffu;

KT_DEVICE void warp_barrier(uint32 lanes) { __syncwarp(lanes); }

template <typename T>
KT_DEVICE T broadcast(uint32 lanes, T value, int32 from, int32 width = WARP) {
  return __shfl_sync(lanes, value, from, width);
}
template <typename T>
KT_DEVICE T shuffle_up(uint32 lanes, T value, int32 by, int32 width = WARP) {
  return __shfl_up_sync(lanes, value, by, width);
}
template <typename T>
KT_DEVICE T shuffle_down(uint32 lanes, T value, int32 by, int32 width = WARP) {
  return __shfl_down_sync(lanes, value, by, width);
}
template <typename T>
KT_DEVICE T shuffle_xor(uint32 lanes, T value, int32 mask, int32 width = WARP) {
  return __shfl_xor_sync(lanes, value, mask, width);
}

KT_DEVICE uint32 ballot(uint32 lanes, bool predicate) { return __ballot_sync(lanes, predicate); }
KT_DEVICE bool any(uint32 lanes, bool predicate) { return __any_sync(lanes, predicate) != 0; }
KT_DEVICE bool all(uint32 lanes, bool predicate) { return __all_sync(lanes, predicate) != 0; }
template <typename T>
KT_DEVICE uint32 match(uint32 lanes, T value) {
  return __match_any_sync(lanes, value);
}

// Before Ampere there is no instruction for a reduction, so shuffles do it.
// KT_REDUCE_BY_SHUFFLES selects them on other architectures, for tests.
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800) || defined(KT_REDUCE_BY_SHUFFLES)
template <typename T, typename Combine>
KT_DEVICE T reduce_lanes(uint32 lanes, T value, Combine combine) {
  T all_of_them = __shfl_sync(lanes, value, first_lane(lanes));
  for (uint32 left = lanes & (lanes - 1); left; left &= left - 1)
    all_of_them = combine(all_of_them, __shfl_sync(lanes, value, first_lane(left)));
  return all_of_them;
}
#define KT_REDUCE(name, instruction, a_with_b)                                 \
  template <typename T>                                                        \
  KT_DEVICE T name(uint32 lanes, T value) {                                    \
    return reduce_lanes(lanes, value, [](T a, T b) -> T { return a_with_b; }); \
  }
#else
#define KT_REDUCE(name, instruction, a_with_b) \
  template <typename T>                        \
  KT_DEVICE T name(uint32 lanes, T value) {    \
    return instruction(lanes, value);          \
  }
#endif
KT_REDUCE(reduce_add, __reduce_add_sync, a + b)  // 32 bits, signed or unsigned, like the next two
KT_REDUCE(reduce_min, __reduce_min_sync, a < b ? a : b)
KT_REDUCE(reduce_max, __reduce_max_sync, a > b ? a : b)
KT_REDUCE(reduce_and, __reduce_and_sync, a& b)  // unsigned only
KT_REDUCE(reduce_or, __reduce_or_sync, a | b)
#undef KT_REDUCE

}  // namespace kt

#include <kt/memory_access.cuh>  // loads and stores

namespace kt {

// Each atomic returns the old value. The address is in global or shared memory.
#define KT_ATOMIC(name, instruction, T) \
  KT_DEVICE T name(T* address, T value) { return instruction(address, value); }
#define KT_ATOMIC_OF_INTEGERS(name, instruction) \
  KT_ATOMIC(name, instruction, int32)            \
  KT_ATOMIC(name, instruction, uint32)           \
  KT_ATOMIC(name, instruction, int64)            \
  KT_ATOMIC(name, instruction, uint64)
KT_ATOMIC_OF_INTEGERS(atomic_min, atomicMin)
KT_ATOMIC_OF_INTEGERS(atomic_max, atomicMax)
KT_ATOMIC(atomic_add, atomicAdd, int32)
KT_ATOMIC(atomic_add, atomicAdd, uint32)
KT_ATOMIC(atomic_add, atomicAdd, uint64)
KT_DEVICE int64 atomic_add(int64* address, int64 value) {
  return static_cast<int64>(atomicAdd(reinterpret_cast<uint64*>(address), static_cast<uint64>(value)));
}
KT_ATOMIC(atomic_or, atomicOr, uint32)
KT_ATOMIC(atomic_or, atomicOr, uint64)
KT_ATOMIC(atomic_and, atomicAnd, uint32)
KT_ATOMIC(atomic_and, atomicAnd, uint64)
KT_ATOMIC(atomic_exchange, atomicExch, int32)
KT_ATOMIC(atomic_exchange, atomicExch, uint64)
#undef KT_ATOMIC_OF_INTEGERS
#undef KT_ATOMIC
KT_DEVICE int64 atomic_exchange(int64* address, int64 value) {
  return static_cast<int64>(atomicExch(reinterpret_cast<uint64*>(address), static_cast<uint64>(value)));
}
KT_DEVICE int32 compare_and_swap(int32* address, int32 expected, int32 value) {
  return atomicCAS(address, expected, value);
}
KT_DEVICE uint64 compare_and_swap(uint64* address, uint64 expected, uint64 value) {
  return atomicCAS(address, expected, value);
}

// A barrier of the whole grid, which must fit on the device at once (a cooperative
// launch). `arrived` counts blocks and starts a launch at zero; it is never reset
// within one, so no block can mistake one barrier for another.
KT_DEVICE void grid_barrier(uint32* arrived) {
#ifdef __CUDACC__
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const uint32 before = atomicAdd(arrived, 1u);
    const uint32 arrivals = before - before % gridDim.x + gridDim.x;
    while (racy_load(arrived) < arrivals) {
    }
    __threadfence();
  }
  __syncthreads();
#else
  simt::grid_barrier(arrived);
#endif
}

//   nanoseconds   the clock of the device, the same for all blocks; its resolution is 32 ns or a microsecond
//   prefetch      loads a line into the L2 cache; no thread waits for it
#ifdef __CUDACC__
KT_DEVICE int64 nanoseconds() {
  int64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
KT_DEVICE void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }
#else
KT_DEVICE int64 nanoseconds() { return simt::nanoseconds(); }
template <typename T>
KT_DEVICE void prefetch(const T* address) {
  __ldg(address);
}
#endif

// Device-side launch of a grid of blocks of BLOCK threads. It runs concurrently with
// the launching grid, which is complete when all its children are. At most
// MAX_CHILDREN may wait at once, as the device refuses more; the caller counts them.
constexpr int32 MAX_CHILDREN = 2048;
#if !defined(__CUDACC__)
template <typename... Parameters, typename... Arguments>
KT_DEVICE void launch_child(void (*kernel)(Parameters...), int32 blocks, Arguments... arguments) {
  simt::launch_child(MAX_CHILDREN, kernel, blocks, static_cast<Parameters>(arguments)...);
}
#elif defined(KT_DEVICE_LAUNCH)  // compiled with -dc
template <typename... Parameters, typename... Arguments>
KT_DEVICE void launch_child(void (*kernel)(Parameters...), int32 blocks, Arguments... arguments) {
  // clang-format off
  kernel<<<blocks, BLOCK, 0, cudaStreamFireAndForget>>>(static_cast<Parameters>(arguments)...);
  // clang-format on
}
#endif

KT_DEVICE int32 bits_of(float value) { return __float_as_int(value); }
KT_DEVICE int64 bits_of(double value) { return __double_as_longlong(value); }
KT_DEVICE float float_of(int32 bits) { return __int_as_float(bits); }
KT_DEVICE double float_of(int64 bits) { return __longlong_as_double(bits); }

// Sums rounded to nearest that keep subnormal numbers. CuPy always compiles with
// -ftz=true, which flushes them to 0 except in PTX instructions without .ftz. The
// suffix .rn also prevents the compiler from fusing the sum with a product.
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

// The same number in 64 bits. A C++ conversion would flush subnormal numbers to 0.
KT_DEVICE double widened(float value) {
#ifdef __CUDACC__
  double wide;
  asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(value));
  return wide;
#else
  return static_cast<double>(value);
#endif
}
KT_DEVICE double widened(double value) { return value; }

}  // namespace kt

// Names of kernel files, which take no prefix.
using kt::ALL_LANES;
using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;
using kt::uint8;
using kt::WARP;

#include <kt/cluster.cuh>  // clusters of blocks
