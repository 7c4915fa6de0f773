#pragma once

#include "gpu/primitives/wgmma.cuh"

namespace attest {

/// issue_product() from shared memory without adding, for N = 64, 80 and 96. It says that d is
/// written and not read: where d held something before, ptxas would otherwise count its registers
/// as needed up to here, and serialise the products of a kernel that has no others left (C7512).
template <typename T, Major a_major, Major b_major, int half_n>
__device__ __forceinline__ void begin_product(float (&d)[half_n], const MatrixDescriptor& a,
                                              const MatrixDescriptor& b) {
  constexpr int N = 2 * half_n;
  static_assert(N == 64 || N == 80 || N == 96);
#ifdef __CUDACC__
#define ATTEST_WGMMA_NEW4(i) "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3])
#define ATTEST_WGMMA_NEW8(i) ATTEST_WGMMA_NEW4(i), ATTEST_WGMMA_NEW4(i + 4)
#define ATTEST_WGMMA_NEW16(i) ATTEST_WGMMA_NEW8(i), ATTEST_WGMMA_NEW8(i + 8)
#define ATTEST_WGMMA_NEW_64 ATTEST_WGMMA_NEW16(0), ATTEST_WGMMA_NEW16(16)
#define ATTEST_WGMMA_NEW_80 ATTEST_WGMMA_NEW_64, ATTEST_WGMMA_NEW8(32)
#define ATTEST_WGMMA_NEW_96 ATTEST_WGMMA_NEW_64, ATTEST_WGMMA_NEW16(32)
#define ATTEST_WGMMA_BEGIN(N, TYPE, A, B, TA, TB)                                            \
  asm volatile(                                                                              \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                             \
      "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                        \
      " {" ATTEST_WGMMA_REGISTERS_##N "}, %" #A ", %" #B ", p, 1, 1, %" #TA ", %" #TB ";\n}" \
      : ATTEST_WGMMA_NEW_##N                                                                 \
      : "l"(a), "l"(b), "n"(int{a_major == Major::mn}), "n"(int{b_major == Major::mn}))
#define ATTEST_WGMMA_BEGIN_CASES(TYPE)            \
  if constexpr (N == 64)                          \
    ATTEST_WGMMA_BEGIN(64, TYPE, 32, 33, 34, 35); \
  else if constexpr (N == 80)                     \
    ATTEST_WGMMA_BEGIN(80, TYPE, 40, 41, 42, 43); \
  else                                            \
    ATTEST_WGMMA_BEGIN(96, TYPE, 48, 49, 50, 51);
  if constexpr (std::is_same_v<T, __half>) {
    ATTEST_WGMMA_BEGIN_CASES("f16")
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
    ATTEST_WGMMA_BEGIN_CASES("bf16")
  }
#undef ATTEST_WGMMA_BEGIN_CASES
#undef ATTEST_WGMMA_BEGIN
#undef ATTEST_WGMMA_NEW_96
#undef ATTEST_WGMMA_NEW_80
#undef ATTEST_WGMMA_NEW_64
#undef ATTEST_WGMMA_NEW16
#undef ATTEST_WGMMA_NEW8
#undef ATTEST_WGMMA_NEW4
#else
  issue_product<T, a_major, b_major>(d, a, b, false);
#endif
}

}  // namespace attest
