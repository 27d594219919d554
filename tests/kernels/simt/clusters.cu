// Clusters of CLUSTER blocks: kernels with known results, and some with a mistake. NVRTC compiles this file, too.
#include <kt/cuda_api.cuh>

using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;

extern "C" __global__ void KT_CLUSTER(CLUSTER) cluster_places(int32* out) {
  out[2 * kt::thread_id()] = kt::block_in_cluster();
  out[2 * kt::thread_id() + 1] = kt::cluster_id();
}

// Every thread adds its value to sums in the cluster's last block, by each kind of access.
extern "C" __global__ void __launch_bounds__(BLOCK) KT_CLUSTER(CLUSTER)
    sums_of_clusters(const int32* in, int32* out, int32* last) {
  KT_SHARED(int32, sum, [2]);
  KT_DYNAMIC_SHARED(uint64, table);
  const int64 i = kt::thread_id();
  if (kt::thread_in_block() == 0) {
    sum[0] = 0;
    sum[1] = -1;
    table[kt::block_in_cluster()] = 0;
  }
  kt::cluster_barrier();
  int32* const sum_there = kt::shared_of(&sum[0], CLUSTER - 1);
  uint64* const place = kt::shared_of(table + kt::block_in_cluster(), kt::block_in_cluster());
  kt::atomic_add(sum_there, in[i]);
  kt::atomic_add(place, static_cast<uint64>(in[i]));
  kt::racy_store(sum_there + 1, in[i]);  // any of them
  kt::cluster_barrier();
  int32 total = 0;
  for (int32 block = 0; block < CLUSTER; ++block) total += static_cast<int32>(*kt::shared_of(table + block, block));
  out[i] = total == *sum_there ? total : -1;
  last[i] = kt::racy_load(sum_there + 1);
  kt::cluster_barrier();
}

// Each block hands its tile to the next of its cluster, `rounds` times; with a count, across barriers of the grid.
extern "C" __global__ void __launch_bounds__(BLOCK) KT_CLUSTER(CLUSTER)
    hands_round(int32* values, int32 rounds, uint32* arrived) {
  KT_SHARED(int32, tile, [2][BLOCK]);
  const int32 t = kt::thread_in_block(), next = (kt::block_in_cluster() + 1) % CLUSTER;
  int32 mine = values[kt::thread_id()];
  tile[0][t] = tile[1][t] = 0;
  for (int32 round = 0; round < rounds; ++round) {
    if (arrived)
      kt::grid_barrier(arrived);
    else
      kt::cluster_barrier();
    *kt::shared_of(&tile[round % 2][t], next) = mine;
    kt::cluster_barrier();
    mine = tile[round % 2][t] + 1;
  }
  values[kt::thread_id()] = mine;
}

#ifndef __CUDACC__
// Launches of children need another compilation on a GPU.

extern "C" __global__ void counts_in_a_child(int32* count) { kt::atomic_add(count, 1); }

extern "C" __global__ void KT_CLUSTER(CLUSTER) launches_from_clusters(int32* counts) {
  kt::cluster_barrier();
  kt::launch_child(counts_in_a_child, 3, counts + kt::block_id());
  kt::cluster_barrier();
}

// Mistakes, which are not compiled for a GPU.

extern "C" __global__ void KT_CLUSTER(CLUSTER) touches_before_the_others_begin(int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  if (kt::block_in_cluster() == 0) out[kt::thread_in_block()] = *kt::shared_of(word, 1);
  kt::cluster_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) exits_while_another_reads(int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  kt::cluster_barrier();
  if (kt::block_in_cluster() == 0) out[kt::thread_id()] = *kt::shared_of(word, 1);
}

// A barrier of the owner's block alone does not order the accesses.
extern "C" __global__ void KT_CLUSTER(CLUSTER) ends_with_a_barrier_of_the_block(int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  kt::cluster_barrier();
  if (kt::block_in_cluster() == 0 && kt::thread_in_block() == 3) out[kt::thread_id()] = *kt::shared_of(word, 1);
  kt::block_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) reads_after_the_end(int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  kt::cluster_barrier();
  if (kt::block_in_cluster() == 1) {
    if (kt::thread_in_block() == 0) kt::atomic_exchange(out, 1);
    return;
  }
  if (kt::thread_in_block() != 0) return;
  while (kt::racy_load(out) == 0) {
  }
  for (int32 i = 0; i < 1000; ++i) kt::atomic_add(out + 1, 1);
  out[2] = *kt::shared_of(word, 1);
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) exits_before_the_cluster_barrier() {
  if (kt::block_in_cluster() != 1 || kt::thread_in_block() != 3) kt::cluster_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) waits_at_two_cluster_barriers() {
  if (kt::block_in_cluster() == 0)
    kt::cluster_barrier();
  else
    kt::cluster_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) waits_at_a_block_barrier_instead() {
  if (kt::block_in_cluster() == 1 && kt::thread_in_block() < 4)
    kt::block_barrier();
  else
    kt::cluster_barrier();
  kt::cluster_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) forgets_the_cluster_barrier(int32* out) {
  KT_SHARED(int32, tile, [BLOCK]);
  const int32 t = kt::thread_in_block();
  tile[t] = 0;
  kt::cluster_barrier();
  *kt::shared_of(&tile[t], 1 - kt::block_in_cluster()) = 1;
  kt::block_barrier();
  out[kt::thread_id()] = tile[t];
  kt::cluster_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) adds_beside_an_atomic_from_afar(int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 0;
  kt::cluster_barrier();
  if (kt::thread_id() == 1)
    word[0] += 1;
  else
    kt::atomic_add(kt::shared_of(word, 0), 1);
  kt::cluster_barrier();
  out[kt::thread_id()] = *kt::shared_of(word, 0);
  kt::cluster_barrier();
}

// A pointer to its own shared memory means nothing to another block.
extern "C" __global__ void KT_CLUSTER(CLUSTER) hands_out_its_own_pointer(uint64* place, int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  if (kt::thread_id() == 0) *place = reinterpret_cast<uint64>(&word[0]);
  kt::cluster_barrier();
  if (kt::block_in_cluster() == 1) out[kt::thread_in_block()] = *reinterpret_cast<int32*>(*place);
  kt::cluster_barrier();
}

extern "C" __global__ void KT_CLUSTER(CLUSTER)
    reaches_into_another_cluster(uint32* arrived, uint64* place, int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  if (kt::thread_id() == 0) *place = reinterpret_cast<uint64>(kt::shared_of(&word[0], 1));
  kt::grid_barrier(arrived);
  if (kt::cluster_id() == 1) out[kt::thread_in_block()] = *reinterpret_cast<int32*>(*place);
  kt::grid_barrier(arrived);
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) asks_for_a_block_too_many(int32* out) {
  KT_SHARED(int32, word, [1]);
  if (kt::thread_in_block() == 0) word[0] = 1;
  kt::cluster_barrier();
  out[kt::thread_id()] = *kt::shared_of(word, CLUSTER);
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) asks_for_global_memory_of_another_block(int32* out) {
  kt::cluster_barrier();
  *kt::shared_of(out, 1) = 1;
}

extern "C" __global__ void KT_CLUSTER(CLUSTER) reads_past_the_memory_of_another_block(int32* out) {
  KT_SHARED(int32, tile, [BLOCK]);
  tile[kt::thread_in_block()] = 1;
  kt::cluster_barrier();
  out[kt::thread_id()] = kt::shared_of(tile, 1 - kt::block_in_cluster())[kt::thread_in_block() + 1];
  kt::cluster_barrier();
}

extern "C" __global__ void launches_clusters(int32* out) {
  if (kt::thread_id() == 0) kt::launch_child(cluster_places, CLUSTER, out);
}
#endif
