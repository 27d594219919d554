// Thread block clusters, from Hopper on: CLUSTER consecutive blocks run at the same time and can
// access each other's shared memory. A kernel with clusters is declared as
//   __global__ void __launch_bounds__(BLOCK) KT_CLUSTER(CLUSTER) name(...)
// and its grid is a multiple of CLUSTER. With CLUSTER == 1, on every architecture, the cluster is
// the block, and all functions work.
//
//   cluster_barrier   every thread of the cluster calls it, and then sees all earlier writes of the
//                     cluster. One barrier must precede the first access to another block's shared
//                     memory, since that block may not have started. One must follow the last
//                     access, since shared memory ends with its block
//   shared_of         the address of this block's shared variable in another block of the cluster,
//                     given by its block_in_cluster. For loads, stores, racy accesses and atomics
//
// Compile-time constant:
//   CLUSTER   blocks per cluster; up to 8 are portable
#pragma once

#include <kt/cuda_api.cuh>

#ifndef CLUSTER
#define CLUSTER 1
#endif

namespace kt {

#if !defined(__CUDACC__)
#define KT_CLUSTER(n)  // the harness reads it
KT_DEVICE void cluster_barrier(int line = __builtin_LINE()) { simt::cluster_barrier(line); }
KT_DEVICE int32 block_in_cluster() { return simt::block_in_cluster(); }
KT_DEVICE int32 cluster_id() { return simt::cluster_index(); }
template <typename T>
KT_DEVICE T* shared_of(T* pointer, int32 block) {
  return static_cast<T*>(simt::shared_of(pointer, block));
}
#elif CLUSTER == 1
#define KT_CLUSTER(n)
KT_DEVICE void cluster_barrier() { block_barrier(); }
KT_DEVICE int32 block_in_cluster() { return 0; }
KT_DEVICE int32 cluster_id() { return block_id(); }
template <typename T>
KT_DEVICE T* shared_of(T* pointer, int32) {
  return pointer;
}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "clusters of several blocks need compute capability 9.0; compile with CLUSTER=1"
#else
#define KT_CLUSTER(n) __cluster_dims__(n, 1, 1)
KT_DEVICE void cluster_barrier() {
  __cluster_barrier_arrive();  // releases
  __cluster_barrier_wait();    // acquires
}
KT_DEVICE int32 block_in_cluster() { return static_cast<int32>(__clusterRelativeBlockRank()); }
KT_DEVICE int32 cluster_id() { return static_cast<int32>(__clusterIdx().x); }
template <typename T>
KT_DEVICE T* shared_of(T* pointer, int32 block) {
  return static_cast<T*>(__cluster_map_shared_rank(pointer, static_cast<uint32>(block)));
}
#endif

}  // namespace kt
