#pragma once

#include <cstdint>

#include "gpu/primitives/warpgroup.cuh"

namespace attest::microbench {

/// Copies `bytes` (a multiple of 16) to shared memory, for wgmma to read. The whole block calls it.
__device__ inline void fill_shared(void* shared, const void* global, int bytes) {
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 16; i += static_cast<int>(blockDim.x)) {
    static_cast<uint4*>(shared)[i] = static_cast<const uint4*>(global)[i];
  }
  fence_async_shared();
  __syncthreads();
}

/// The warpgroup of this thread, in a register that the compiler knows to be the same for the warp.
__device__ inline int warpgroup_of_thread() {
  return __shfl_sync(~0U, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
}

}  // namespace attest::microbench
