// Kernels with one mistake each, which the harness must report.
#include <simt.hpp>

// The last comparison lets one element too many through.
extern "C" __global__ void writes_one_too_far(int* values, int n) {
  for (int i = static_cast<int>(threadIdx.x); i <= n; i += static_cast<int>(blockDim.x)) values[i] = i;
}

extern "C" __global__ void reads_one_too_far(const int* values, int n, int* sum) {
  for (int i = static_cast<int>(threadIdx.x); i <= n; i += static_cast<int>(blockDim.x))
    atomicAdd(sum, __ldg(values + i));
}

extern "C" __global__ void atomic_too_far(int* values, int n) { atomicAdd(values + n, 1); }

extern "C" __global__ void overflows_an_integer(int* values, int n) { values[threadIdx.x] = n + 2147483647; }

extern "C" __global__ void forgets_the_barrier(int* out) {
  SIMT_SHARED(int, tile, [64]);
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void reads_unwritten_shared_memory(int* out) {
  SIMT_SHARED(int, tile, [64]);
  if (threadIdx.x < 63) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void exits_before_a_shuffle(int* out) {
  if (threadIdx.x == 5) return;
  out[threadIdx.x] = __shfl_sync(0xffffffffu, out[threadIdx.x], 0);
}

extern "C" __global__ void shuffles_in_one_branch(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
  __syncthreads();
}

extern "C" __global__ void votes_where_others_shuffle(int* out) {
  if (threadIdx.x % 32 < 16)
    out[threadIdx.x] = __any_sync(0xffffffffu, 1);
  else
    out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
}

extern "C" __global__ void shuffles_from_a_lane_outside(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_sync(0xffffu, 1, 20);
}

extern "C" __global__ void shuffles_without_itself(int* out) { out[threadIdx.x] = __shfl_sync(1u, 1, 0); }

extern "C" __global__ void all_write_one_word(int* out) { out[0] = static_cast<int>(threadIdx.x); }

extern "C" __global__ void counts_without_an_atomic(int* out) { out[0] = out[0] + 1; }

extern "C" __global__ void reads_beside_an_atomic(int* out) {
  if (threadIdx.x == 7)
    out[1] = out[0];
  else
    atomicAdd(out, 1);
}

extern "C" __global__ void takes_a_vote_for_a_barrier(int* out) {
  out[threadIdx.x] = 1;
  __any_sync(0xffffffffu, 1);
  out[32 + threadIdx.x] = out[31 - threadIdx.x];
}

extern "C" __global__ void writes_what_it_loads_as_constant(int* out) {
  out[threadIdx.x] = __ldg(out + threadIdx.x) + 1;
}

extern "C" __global__ void exits_before_the_barrier() {
  if (threadIdx.x < 48) __syncthreads();
}

extern "C" __global__ void waits_at_two_barriers() {
  if (threadIdx.x < 48)
    __syncthreads();
  else
    __syncthreads();
}

extern "C" __global__ void grid_barrier_alone() { simt::grid_barrier(); }

extern "C" __global__ void exits_before_the_grid_barrier() {
  if (blockIdx.x != 1 || threadIdx.x != 3) simt::grid_barrier();
}

extern "C" __global__ void waits_for_ever(int* flag) {
  while (static_cast<volatile int*>(flag)[0] == 0) {
  }
}

// Block 0 announces its value without a fence before the announcement.
extern "C" __global__ void announces_without_a_fence(int* value, int* flag, int* out) {
  if (blockIdx.x == 0) {
    value[0] = 42;
    atomicExch(flag, 1);
  } else {
    while (static_cast<volatile int*>(flag)[0] == 0) {
    }
    __threadfence();
    out[0] = value[0];
  }
}
