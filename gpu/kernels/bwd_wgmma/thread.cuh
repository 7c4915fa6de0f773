#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

/// The calling thread's place in its warpgroup. Every call reads the thread number again: what the
/// compiler works out from it before the loops would have to wait in local memory.
struct BwdThread {
  static __device__ __forceinline__ int lane() { return static_cast<int>(number() & 31U); }
  static __device__ __forceinline__ int warp() { return static_cast<int>(number() >> 5 & 3U); }
  /// A 0 of which the compiler knows nothing: it can neither work out before a loop nor keep what
  /// follows from it.
  static __device__ __forceinline__ int unknown_zero() {
    int zero = 0;
#ifdef __CUDACC__
    asm volatile("mov.u32 %0, 0;" : "=r"(zero));
#endif
    return zero;
  }
  /// Number of the thread in its warpgroup.
  static __device__ __forceinline__ int thread() {
    return static_cast<int>(number() & 127U);
  }

 private:
  static __device__ __forceinline__ unsigned number() {
#ifdef __CUDACC__
    unsigned x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
#else
    return threadIdx.x;
#endif
  }
};

}  // namespace attest
