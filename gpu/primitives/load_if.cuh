#pragma once

#include <cstdint>

#include "gpu/primitives/launch.cuh"

namespace attest {

/// `*from` in global memory where `is_read`, else `kept`. What a branch or a choice loads nvcc
/// moves into the register where its paths meet, and the move waits for memory; this load goes to
/// the register of `kept`, and nobody waits before the value is used.
inline __device__ std::int32_t load_if(bool is_read, const std::int32_t* from, std::int32_t kept) {
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.s32 p, %2, 0;\n"
      "@p ld.global.s32 %0, [%1];\n"
      "}\n"
      : "+r"(kept)
      : "l"(from), "r"(static_cast<int>(is_read)));
  return kept;
#else
  return is_read ? *from : kept;
#endif
}

}  // namespace attest
