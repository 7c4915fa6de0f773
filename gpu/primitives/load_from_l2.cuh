#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

/// Loads what other blocks wrote while this one ran: past the L1 cache, which may hold what was
/// there before.
template <typename Value>
__device__ __forceinline__ Value load_from_l2(const Value* address) {
#ifdef __CUDACC__
  return __ldcg(address);
#else
  return *address;
#endif
}

}  // namespace attest
