#pragma once

#include "gpu/primitives/wgmma.cuh"

namespace attest {

/// issue_product() from shared memory without adding, for N = 64. It says that d is written and not
/// read: where d held something before, ptxas would otherwise count its registers as needed up to
/// here, and serialise the products of a kernel that has no others left (C7512).
template <typename T, Major a_major, Major b_major>
__device__ __forceinline__ void begin_product(float (&d)[32], const MatrixDescriptor& a,
                                              const MatrixDescriptor& b) {
#ifdef __CUDACC__
#define ATTEST_WGMMA_NEW4(i) "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3])
#define ATTEST_WGMMA_NEW16(i)                                               \
  ATTEST_WGMMA_NEW4(i), ATTEST_WGMMA_NEW4(i + 4), ATTEST_WGMMA_NEW4(i + 8), \
      ATTEST_WGMMA_NEW4(i + 12)
#define ATTEST_WGMMA_BEGIN(TYPE)                                                                 \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {" ATTEST_WGMMA_REGISTERS_64 \
      "}, %32, %33, p, 1, 1, %34, %35;\n}"                                                       \
      : ATTEST_WGMMA_NEW16(0), ATTEST_WGMMA_NEW16(16)                                            \
      : "l"(a), "l"(b), "n"(int{a_major == Major::mn}), "n"(int{b_major == Major::mn}))
  if constexpr (std::is_same_v<T, __half>) {
    ATTEST_WGMMA_BEGIN("f16");
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
    ATTEST_WGMMA_BEGIN("bf16");
  }
#undef ATTEST_WGMMA_BEGIN
#undef ATTEST_WGMMA_NEW16
#undef ATTEST_WGMMA_NEW4
#else
  issue_product<T, a_major, b_major>(d, a, b, false);
#endif
}

}  // namespace attest
