// Kernels with one mistake each, which the harness must report.
#include <kt/cuda_api.cuh>

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

extern "C" __global__ void counts_without_an_atomic(int* out) { out[0] = out[0] + 1; }

extern "C" __global__ void reads_beside_an_atomic(int* out) {
  if (threadIdx.x == 7)
    out[1] = out[0];
  else
    atomicAdd(out, 1);
}

extern "C" __global__ void writes_what_it_loads_as_constant(int* out) {
  out[threadIdx.x] = __ldg(out + threadIdx.x) + 1;
}

extern "C" __global__ void exits_before_the_barrier() {
  if (threadIdx.x < 48) __syncthreads();
}

extern "C" __global__ void exits_before_the_grid_barrier() {
  if (blockIdx.x != 1 || threadIdx.x != 3) simt::grid_barrier();
}

extern "C" __global__ void waits_for_ever(int* flag) {
  while (static_cast<volatile int*>(flag)[0] == 0) {
  }
}

// Block 0 sets its flag without a fence between the value and the flag.
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

// The same with the names that kernels use.
extern "C" __global__ void waits_at_two_block_barriers() {
  if (kt::thread_in_block() < 48)
    kt::block_barrier();
  else
    kt::block_barrier();
}

extern "C" __global__ void counts_where_others_wait(int* out) {
  out[kt::thread_in_block()] = kt::thread_in_block() < 48 ? kt::block_any(true) : kt::block_all(true);
}

extern "C" __global__ void forgets_the_block_barrier(int* out) {
  KT_DYNAMIC_SHARED(int, tile);
  tile[kt::thread_in_block()] = 1;
  out[kt::thread_in_block()] = tile[kt::thread_in_block() ^ 1];
}

extern "C" __global__ void reads_past_dynamic_shared_memory(int* out) {
  KT_DYNAMIC_SHARED(int, tile);
  tile[kt::thread_in_block()] = 1;
  kt::block_barrier();
  out[kt::thread_in_block()] = tile[kt::thread_in_block() + 1];
}

// Only one of the two accesses is declared racy.
extern "C" __global__ void stores_beside_a_racy_load(int* out) {
  KT_SHARED(int, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 0;
  kt::block_barrier();
  if (kt::thread_in_block() == 0)
    word[0] = 1;
  else
    out[kt::thread_in_block()] = kt::racy_load(word);
}

extern "C" __global__ void adds_beside_an_atomic_in_shared_memory(int* out) {
  KT_SHARED(int, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 0;
  kt::block_barrier();
  if (kt::thread_in_block() == 0)
    word[0] += 1;
  else
    kt::atomic_add(word, out[0]);
}

extern "C" __global__ void matches_without_itself(int* out) {
  out[kt::thread_in_block()] = static_cast<int>(kt::match(0xfffeu, 1));
}

extern "C" __global__ void shuffles_up_from_outside(int* out) {
  if (kt::lane() >= 8) out[kt::thread_in_block()] = kt::shuffle_up(0xffffff00u, 1, 4, 16);
}

extern "C" __global__ void takes_a_shuffle_for_a_barrier(int* out) {
  out[kt::thread_in_block()] = kt::broadcast(kt::ALL_LANES, 1, 0);
  out[32 + kt::thread_in_block()] = out[31 - kt::thread_in_block()];
}

extern "C" __global__ void stores_streaming_beside_another(int* out) {
  kt::store_streaming(out, kt::thread_in_block());
}

extern "C" __global__ void waits_at_a_grid_barrier_with_a_count_of(kt::uint32* arrived) { kt::grid_barrier(arrived); }

extern "C" __global__ void waits_at_two_counts(kt::uint32* arrived) { kt::grid_barrier(arrived + kt::block_id()); }

extern "C" __global__ void forgets_the_grid_barrier(kt::uint32* arrived, int* out) {
  out[kt::thread_id()] = 1;
  kt::block_barrier();
  if (out[(kt::thread_id() + 8) % kt::n_threads()] == 1) out[kt::n_threads()] = 1;
  kt::grid_barrier(arrived);
}

// Memory that no other grid can access; NVRTC warns of the second one.
extern "C" __global__ void add_one_child(int* value) { value[0] += 1; }

extern "C" __global__ void hands_out_shared_memory(int* values) {
  KT_SHARED(int, tile, [4]);
  if (kt::thread_id() != 0) return;
  tile[0] = values[0];
  kt::launch_child(add_one_child, 1, tile);
}

extern "C" __global__ void hands_out_a_local_variable(int* values) {
  if (kt::thread_id() != 0) return;
  int mine[2] = {values[0], values[1]};
  kt::launch_child(add_one_child, 1, mine);
}
