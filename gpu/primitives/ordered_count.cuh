#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

/// Counts `counter` in global memory up to `limit`, then begins again at 0; returns what it was
/// before. Whoever counts later sees what was written by whoever counted earlier, and by threads
/// that met him at a barrier before. One such atomic costs less than an atomic between two
/// __threadfence(), each of which waits for all that its warp has under way.
inline __device__ unsigned count_in_order(unsigned* counter, unsigned limit) {
#ifdef __CUDACC__
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(limit)
               : "memory");
  return before;
#else
  __threadfence();
  return atomicInc(counter, limit);
#endif
}

}  // namespace attest
