#pragma once

#include <cstring>
#include <type_traits>

#include "gpu/primitives/shared_address.cuh"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace attest {

// The tensor cores as a warp uses them from sm_80 on [PTX ISA, warp-level matrix instructions].
// Every lane of the warp calls with the same matrices; each holds a part of them, its fragment.
//
//   lane = 4 g + t, two 16-bit values a register, the lower column in the lower half
//   A [16, 16]  a[0]: row g,     columns 2 t, 2 t + 1      a[2]: row g,     columns 2 t + 8, ...
//               a[1]: row g + 8, columns 2 t, 2 t + 1      a[3]: row g + 8, columns 2 t + 8, ...
//   B [16, 8]   b[0]: rows 2 t, 2 t + 1, column g          b[1]: rows 2 t + 8, 2 t + 9, column g
//   D [16, 8]   d[0], d[1]: row g, columns 2 t, 2 t + 1    d[2], d[3]: row g + 8, the same columns

/// D += A B. T is __half or __nv_bfloat16; D is fp32. On the executor the arithmetic is that of
/// core/attention/tensor_core_product.hpp.
template <typename T>
__device__ void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  constexpr bool is_half = std::is_same_v<T, __half>;
  static_assert(is_half || std::is_same_v<T, __nv_bfloat16>);
#ifdef __CUDACC__
  if constexpr (is_half)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simt::mma_16x8x16(is_half ? ElementType::fp16 : ElementType::bf16, d, a, b, __builtin_FILE(),
                    __builtin_LINE());
#endif
}

/// D += A B in TF32, A [16, 8] and B [8, 8], one fp32 value a register: the tensor core cuts it to
/// 10 bits of fraction, without rounding. a[0]: row g, column t; a[1]: row g + 8; a[2], a[3]: the
/// same rows, column t + 4; b[0]: row t, column g; b[1]: row t + 4. D as above.
inline __device__ void mma_16x8x8_tf32(float (&d)[4], const unsigned (&a)[4],
                                       const unsigned (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  simt::mma_16x8x8_tf32(d, a, b, __builtin_FILE(), __builtin_LINE());
#endif
}

/// x rounded to TF32's 10 bits of fraction, ties to even; a NaN becomes 0x7fffffff. sm_90.
inline __device__ float rounded_to_tf32(float x) {
#ifdef __CUDACC__
  unsigned bits;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
#else
  const unsigned bits = __float_as_uint(x);
  if (x != x) return __uint_as_float(0x7fffffffU);
  return __uint_as_float((bits + 0xfffU + (bits >> 13 & 1U)) & 0xffffe000U);
#endif
}

/// Loads `count` (1, 2 or 4) matrices of 8 rows of 16 bytes from shared memory. Lane 8 i + r gives
/// the address, a multiple of 16, of row r of matrix i; register i of lane 4 g + t receives columns
/// 2 t and 2 t + 1 of row g of matrix i.
template <int count>
__device__ void load_matrices(unsigned (&r)[count], SharedAddress row) {
  static_assert(count == 1 || count == 2 || count == 4);
#ifdef __CUDACC__
  const unsigned address = row.value();
  if constexpr (count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r[0])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
#else
  simt::load_matrices(r, count, false, row.value(), __builtin_FILE(), __builtin_LINE());
#endif
}

/// Loads matrices of 16-bit elements, each transposed on the way: register i of lane 4 g + t
/// receives rows 2 t and 2 t + 1 of column g.
template <int count>
__device__ void load_matrices_transposed(unsigned (&r)[count], SharedAddress row) {
  static_assert(count == 1 || count == 2 || count == 4);
#ifdef __CUDACC__
  const unsigned address = row.value();
  if constexpr (count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[0])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
#else
  simt::load_matrices(r, count, true, row.value(), __builtin_FILE(), __builtin_LINE());
#endif
}

/// Register of a fragment: two fp32 numbers rounded to T, the first in the lower half.
template <typename T>
__device__ unsigned packed(float low, float high) {
  unsigned bits;
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    memcpy(&bits, &pair, sizeof bits);
  }
#else
  const T pair[2] = {T(low), T(high)};
  memcpy(&bits, pair, sizeof bits);
#endif
  return bits;
}

}  // namespace attest
