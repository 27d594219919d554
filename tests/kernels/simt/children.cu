// Kernels that launch kernels. NVRTC compiles this file, too.
#include <kt/cuda_api.cuh>

using kt::int32;
using kt::int64;

// Adds `value` to `n` numbers.
extern "C" __global__ void add_child(int32* values, int64 n, int32 value) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads()) values[i] += value;
}

// Every thread numbers its part of the array, and a child of that thread adds to it.
extern "C" __global__ void hands_out_parts(int32* values, int32 part) {
  int32* const mine = values + kt::thread_id() * part;
  for (int32 i = 0; i < part; ++i) mine[i] = i;
  kt::launch_child(add_child, 2, mine, part, kt::thread_id() * 100);
}

// After a barrier one thread launches for the block.
extern "C" __global__ void launches_after_a_barrier(int32* values) {
  values[kt::thread_id()] = kt::thread_in_block();
  kt::block_barrier();
  if (kt::thread_in_block() == 0) kt::launch_child(add_child, 1, values + kt::thread_id(), BLOCK, 1000);
}

// Halves a range until one number is left; each thread of each grid has its own part.
extern "C" __global__ void halve(int32* values, int64 n) {
  if (kt::thread_id() != 0) return;
  if (n == 1) {
    values[0] += 1;
    return;
  }
  kt::launch_child(halve, 1, values, n / 2);
  kt::launch_child(halve, 1, values + n / 2, n - n / 2);
}

// Uses its block: barriers, shared memory, a warp's sum; `sums` of each block.
extern "C" __global__ void sum_child(const int32* values, int32* sums) {
  KT_SHARED(int32, total, [1]);
  if (kt::thread_in_block() == 0) total[0] = 0;
  kt::block_barrier();
  const int32 of_warp = kt::reduce_add(kt::ALL_LANES, values[kt::thread_id()]);
  if (kt::lane() == 0) kt::atomic_add(total, of_warp);
  kt::block_barrier();
  if (kt::thread_in_block() == 0) sums[kt::block_id()] = total[0];
}
extern "C" __global__ void sums_in_a_child(const int32* values, int32* sums, int32 blocks) {
  if (kt::thread_id() == 0) kt::launch_child(sum_child, blocks, values, sums);
}

extern "C" __global__ void counts_child(int32* counter) { kt::atomic_add(counter, 1); }
extern "C" __global__ void launches_many(int32* counter, int32 each, int32 blocks) {
  for (int32 i = 0; i < each; ++i) kt::launch_child(counts_child, blocks, counter);
}

// ---------------------------------------------------------------- with one mistake each

extern "C" __global__ void child_reads_too_far(const int32* values, int64 n, int32* out) {
  const int64 i = kt::thread_id();
  if (i <= n) kt::atomic_add(out, values[i]);
}
extern "C" __global__ void launches_a_child_that_reads_too_far(const int32* values, int64 n, int32* out) {
  if (kt::thread_id() == 0) kt::launch_child(child_reads_too_far, 1, values, n, out);
}

// The child sees what the launching thread wrote, but not what the neighboring thread wrote.
extern "C" __global__ void launches_beside_a_writer(int32* values) {
  values[kt::thread_id()] = 1;
  if (kt::thread_id() == 0) kt::launch_child(add_child, 1, values, 2, 1);
}

extern "C" __global__ void writes_after_the_launch(int32* values) {
  if (kt::thread_id() != 0) return;
  kt::launch_child(add_child, 1, values, 1, 1);
  values[0] = 5;
}

extern "C" __global__ void reads_after_the_launch(int32* values, int32* out) {
  if (kt::thread_id() == 0) kt::launch_child(add_child, 1, values, 1, 1);
  kt::block_barrier();
  out[kt::thread_id()] = values[0];
}

extern "C" __global__ void two_children_share_a_word(int32* values) {
  if (kt::thread_id() != 0) return;
  kt::launch_child(add_child, 1, values, 2, 1);
  kt::launch_child(add_child, 1, values + 1, 2, 1);
}

// Launches nested children up to the limit.
extern "C" __global__ void descend(int32* depth) {
  if (kt::thread_id() != 0) return;
  depth[0] += 1;
  kt::launch_child(descend, 1, depth);
}

extern "C" __global__ void barrier_child(int32* out) {
  if (kt::thread_in_block() != 1) kt::block_barrier();
  out[kt::thread_id()] = 1;
}
extern "C" __global__ void launches_a_child_that_is_stuck(int32* out) {
  if (kt::thread_id() == 0) kt::launch_child(barrier_child, 1, out);
}
