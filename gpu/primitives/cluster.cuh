#pragma once

#ifdef __CUDACC__
#include "gpu/runtime/cluster_launch.hpp"
#else
#include "gpu/simt/cluster.hpp"
#endif

namespace attest {

/// Thread block clusters [PTX ISA, sm_90]: blocks that launch_clusters() starts together, side by
/// side in x, and that read and write each other's shared memory. A block's shared memory is there
/// from the moment at which all blocks have begun, which a barrier of the cluster says, until the
/// block ends: a block that read a peer's memory must arrive again before that peer may exit.
/// Both are checked on the executor.
class Cluster {
 public:
  /// The place of what lies at `shared` in this block in the block of rank `rank`. No block has a
  /// different layout.
  template <typename T>
  static __device__ T* in_block(T* shared, int rank) {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
    return static_cast<T*>(__cluster_map_shared_rank(shared, static_cast<unsigned>(rank)));
#else
    return shared;  // never launched
#endif
#elif !defined(__CUDACC__)
    return static_cast<T*>(simt::in_block_of_cluster(shared, rank));
#else
    return shared;
#endif
  }

  /// The barrier of the cluster in its two halves, each for all threads of all blocks, the lanes of
  /// a warp together: what a thread did before it arrived is done for every thread that has waited.
  static __device__ void arrive() {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
#elif !defined(__CUDACC__)
    simt::arrive_cluster();
#endif
  }
  static __device__ void wait() {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
#elif !defined(__CUDACC__)
    simt::wait_cluster(__builtin_FILE(), __builtin_LINE());
#endif
  }
};

}  // namespace attest
