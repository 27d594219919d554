// Kernels without a mistake, whose results the tests know.
#include <simt.hpp>

extern "C" __global__ void ids(long long* out) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  out[i] = i * gridDim.x;
}

extern "C" __global__ void shuffles(const int* in, int argument, int width, double* out) {
  const unsigned t = threadIdx.x, n = blockDim.x, all = 0xffffffffu;
  const double mine = in[t];
  out[t] = __shfl_sync(all, mine, argument, width);
  out[n + t] = __shfl_up_sync(all, mine, argument, width);
  out[2 * n + t] = __shfl_down_sync(all, mine, argument, width);
  out[3 * n + t] = __shfl_xor_sync(all, mine, argument, width);
}

// Lanes 0 to 23 take part.
extern "C" __global__ void votes(const int* in, unsigned* out) {
  const unsigned t = threadIdx.x, n = blockDim.x, lanes = 0x00ffffffu;
  if (t % 32 >= 24) return;
  const int mine = in[t];
  int same;
  out[t] = __ballot_sync(lanes, mine > 0);
  out[n + t] = static_cast<unsigned>(__any_sync(lanes, mine > 0));
  out[2 * n + t] = static_cast<unsigned>(__all_sync(lanes, mine > 0));
  out[3 * n + t] = __match_any_sync(lanes, mine);
  out[4 * n + t] = __match_all_sync(lanes, mine, &same);
  out[5 * n + t] = static_cast<unsigned>(same);
}

extern "C" __global__ void reductions(const int* in, int* out) {
  const unsigned t = threadIdx.x, n = blockDim.x, all = 0xffffffffu;
  const int mine = in[t];
  out[t] = __reduce_add_sync(all, mine);
  out[n + t] = __reduce_min_sync(all, mine);
  out[2 * n + t] = __reduce_max_sync(all, mine);
  out[3 * n + t] = static_cast<int>(__reduce_min_sync(all, static_cast<unsigned>(mine)));
  out[4 * n + t] = static_cast<int>(__reduce_and_sync(all, static_cast<unsigned>(mine)));
  out[5 * n + t] = static_cast<int>(__reduce_or_sync(all, static_cast<unsigned>(mine)));
  out[6 * n + t] = static_cast<int>(__reduce_xor_sync(all, static_cast<unsigned>(mine)));
}

extern "C" __global__ void counting_barriers(const int* in, int* out) {
  const unsigned t = threadIdx.x, n = blockDim.x;
  const int mine = in[blockIdx.x * n + t];
  int* const mine_out = out + 3 * n * blockIdx.x;
  mine_out[t] = __syncthreads_count(mine);
  mine_out[n + t] = __syncthreads_and(mine);
  mine_out[2 * n + t] = __syncthreads_or(mine);
}

template <typename T>
__device__ __forceinline__ void update_all(T* out, T value) {
  atomicAdd(out, value);
  atomicMin(out + 1, value);
  atomicMax(out + 2, value);
  if (value == T(7)) atomicExch(out + 3, value);
  T before = *static_cast<volatile T*>(out + 4), seen;
  do {
    seen = before;
    before = atomicCAS(out + 4, seen, static_cast<T>(seen + value));
  } while (before != seen);
}

extern "C" __global__ void atomics(int* a, unsigned* b, long long* c, unsigned long long* d, float* e, double* f,
                                   unsigned* g) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  update_all(a, i - 20);
  update_all(b, static_cast<unsigned>(i));
  update_all(c, static_cast<long long>(i - 20) << 33 | 7);
  update_all(d, static_cast<unsigned long long>(i) << 33 | 7);
  update_all(e, static_cast<float>(i - 20));
  update_all(f, static_cast<double>(i - 20));
  atomicAnd(g, ~(1u << (i % 32)));
  atomicOr(g + 1, 1u << (i % 32));
  atomicXor(g + 2, 1u << (i % 32));
}

// A running sum over the block, through shared memory, in place.
extern "C" __global__ void scan_in_shared_memory(int* values) {
  SIMT_SHARED(int, sums, [2][64]);
  SIMT_DYNAMIC_SHARED(int, copy);
  const unsigned t = threadIdx.x, first = blockIdx.x * blockDim.x;
  sums[0][t] = values[first + t];
  int from = 0;
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    __syncthreads();
    sums[1 - from][t] = sums[from][t] + (t >= step ? sums[from][t - step] : 0);
    from = 1 - from;
  }
  copy[t] = sums[from][t];
  __syncthreads();
  values[first + t] = copy[t];
}

// Every thread adds the value of its neighbor in the next block, `rounds` times.
extern "C" __global__ void passes_round(int* values, int* others, int rounds) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    others[i] = values[(i + blockDim.x) % n];
    simt::grid_barrier();
    values[i] += others[i];
    simt::grid_barrier();
  }
}

// Lanes with the same value count themselves with one atomic per group; any grouping is right.
extern "C" __global__ void counts_in_groups(int* counters, int* groups) {
  const unsigned lane = threadIdx.x % 32;
  const int which = lane < 10;
  const unsigned lanes = which ? __activemask() : __activemask();
  const int leader = __ffs(static_cast<int>(lanes)) - 1;
  int place = 0;
  if (static_cast<int>(lane) == leader) {
    place = atomicAdd(counters + which, __popc(lanes));
    atomicAdd(groups, 1);
  }
  place = __shfl_sync(lanes, place, leader) + __popc(lanes & ((1u << lane) - 1u));
  counters[2 + 64 * which + place] = 1;
}

// Each block adds to the sum that the previous block publishes.
extern "C" __global__ void looks_back(int* sums, int* flags, int* turn) {
  SIMT_SHARED(int, place, [1]);
  if (threadIdx.x == 0) place[0] = atomicAdd(turn, 1);
  __syncthreads();
  const int block = place[0];
  if (threadIdx.x != 0) return;
  int before = 0;
  if (block > 0) {
    while (static_cast<volatile int*>(flags)[block - 1] == 0) {
    }
    __threadfence();
    before = __ldcg(sums + block - 1);
  }
  __stcg(sums + block, before + block);
  __threadfence();
  atomicExch(flags + block, 1);
}

extern "C" __global__ void order_of_arrival(int* counter, int* order) {
  order[atomicAdd(counter, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}
