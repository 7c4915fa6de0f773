#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

/// Whoever sees what this thread writes after it sees all that the thread wrote before, and what
/// other threads wrote before a barrier that it has passed. In __threadfence() all fences of the
/// GPU have one order besides (fence.sc), which costs more and which a counter does not need.
inline __device__ void fence_device_memory() {
#ifdef __CUDA_ARCH__
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#else
  __threadfence();
#endif
}

}  // namespace attest
