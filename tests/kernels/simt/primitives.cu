// Kernels without a mistake, whose results the tests know.
#include <simt.hpp>

extern "C" __global__ void ids(long long* out) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  out[i] = i * gridDim.x;
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
