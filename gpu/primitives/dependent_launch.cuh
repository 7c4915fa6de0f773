#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

// Programmatic dependent launch [CUDA C++ Programming Guide]: blocks of a kernel that
// launch_dependent() starts may run while those of the launch before it still do, up to
// wait_for_predecessor(). What the launch before has written they find only behind it. A thread
// that reads it without the wait is a finding on the executor.

/// Returns when the launch before this one has ended and all of its memory is there. Of a kernel
/// that was launched as usual: at once.
inline __device__ void wait_for_predecessor() {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#elif !defined(__CUDACC__)
  simt::wait_for_predecessor();
#endif
}

/// Lets the launch behind begin once all blocks of this one have said so, or have ended.
inline __device__ void let_successor_begin() {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
#endif
}

}  // namespace attest
