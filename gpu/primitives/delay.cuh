#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

/// Pauses for a random time, up to 4 microseconds, with the Plan's delays: a hand-over that only
/// happens to be in time then comes too late. Does nothing otherwise.
template <typename Shape>
__device__ __forceinline__ void maybe_pause(unsigned seed) {
#ifdef __CUDACC__
  if constexpr (Shape::choice.delays) {
    unsigned x =
        seed ^ static_cast<unsigned>(clock64()) * 0x9e3779b9U ^ threadIdx.x / 32 * 0x85ebca6bU;
    x ^= x >> 15;
    x *= 0x2c1b3c6dU;
    x ^= x >> 12;
    if (x % 4 == 0) __nanosleep(x >> 8 & 0xfffU);
  }
#else
  (void)seed;  // the executor draws the order of warps anew anyway
#endif
}

}  // namespace attest
