#pragma once

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "gpu/primitives/wgmma.cuh"

namespace attest {

// wgmma of e4m3: as wgmma.cuh says, with 32 codes where 16 numbers of 16 bits are. Both factors are
// contiguous along the sum: there is no other form. The accumulator keeps 13 bits of fraction
// (hopper_fp8()).
//
//   A [64, 32]  a[0]: row g, columns 4 t to 4 t + 3      a[2]: row g, columns 4 t + 16 to 4 t + 19
//               a[1]: row g + 8, the same as a[0]        a[3]: row g + 8, the same as a[2]

#ifdef __CUDACC__
#define ATTEST_WGMMA_E4M3_SS(N, A, B, P)                                                           \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                                             \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N                                        \
               "k32.f32.e4m3.e4m3 {" ATTEST_WGMMA_REGISTERS_##N "}, %" #A ", %" #B ", p, 1, 1;\n}" \
               : ATTEST_WGMMA_D_##N                                                                \
               : "l"(a), "l"(b), "r"(int{adds}))
#define ATTEST_WGMMA_E4M3_RS(N, A0, A1, A2, A3, B, P)                              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                             \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N                        \
               "k32.f32.e4m3.e4m3 {" ATTEST_WGMMA_REGISTERS_##N                    \
               "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p, 1, 1;\n}" \
               : ATTEST_WGMMA_D_##N                                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{adds}))
#endif

/// The N for which a product of codes is spelled out.
template <int N>
inline constexpr bool is_code_product_width = N == 64 || N == 128;

/// D = A B, or D += A B where `adds`: A [64, 32] and B [32, N] of e4m3, both in shared memory.
template <int half_n>
__device__ __forceinline__ void issue_e4m3_product(float (&d)[half_n], const MatrixDescriptor& a,
                                                   const MatrixDescriptor& b, bool adds) {
  constexpr int N = 2 * half_n;
  static_assert(is_code_product_width<N>);
#ifdef __CUDACC__
  if constexpr (N == 64)
    ATTEST_WGMMA_E4M3_SS(64, 32, 33, 34);
  else
    ATTEST_WGMMA_E4M3_SS(128, 64, 65, 66);
#else
  simt::multiply_group({ElementType::e4m3, d, N, nullptr, a, b, false, false, adds},
                       __builtin_FILE(), __builtin_LINE());
#endif
}

/// Issues a product with A in registers.
template <int half_n>
__device__ __forceinline__ void issue_e4m3_product(float (&d)[half_n], const unsigned (&a)[4],
                                                   const MatrixDescriptor& b, bool adds) {
  constexpr int N = 2 * half_n;
  static_assert(is_code_product_width<N>);
#ifdef __CUDACC__
  if constexpr (N == 64)
    ATTEST_WGMMA_E4M3_RS(64, 32, 33, 34, 35, 36, 37);
  else
    ATTEST_WGMMA_E4M3_RS(128, 64, 65, 66, 67, 68, 69);
#else
  simt::multiply_group({ElementType::e4m3, d, N, a, {}, b, false, false, adds}, __builtin_FILE(),
                       __builtin_LINE());
#endif
}

/// Four numbers rounded to e4m3, to nearest with ties to even, those beyond 448 to it; x0 in the
/// lowest byte.
__device__ __forceinline__ unsigned packed_e4m3(float x0, float x1, float x2, float x3) {
#ifdef __CUDACC__
  unsigned codes;
  asm("{\n.reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}"
      : "=r"(codes)
      : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
  return codes;
#else
  const auto code = [](float x) {
    return encode(ElementType::e4m3, static_cast<float>(round_to(ElementType::e4m3, x)));
  };
  return code(x0) | code(x1) << 8 | code(x2) << 16 | code(x3) << 24;
#endif
}

}  // namespace attest
