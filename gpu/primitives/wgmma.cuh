#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <cstdint>
#include <type_traits>

#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

// The tensor cores as a warpgroup uses them on sm_90a [PTX ISA, wgmma]. All 128 threads issue a
// product together; it runs while they go on. B lies in shared memory (wgmma_descriptor.hpp), A
// there or in registers, D [64, N] in registers, fp32. Lane 4 g + t of warp w has
//
//   D           d[4 j + 0, 1]: row 16 w + g,     columns 8 j + 2 t, 2 t + 1
//               d[4 j + 2, 3]: row 16 w + g + 8, the same columns
//   A [64, 16]  a[0]: row g, columns 2 t, 2 t + 1      a[2]: row g, columns 2 t + 8, 2 t + 9
//               a[1]: row g + 8, the same as a[0]      a[3]: row g + 8, the same as a[2]
//
// so that two neighbouring groups of 8 columns of D, packed, are an A.
//
//   fence_products();  issue_product(...) ...;  commit_products();  ...  wait_for_products<0>();
//
// Between issue and wait no instruction may touch d, or a: ptxas would then wait at once, and say
// so (C7510 and its like), which the build refuses. hold() keeps the compiler from moving such
// instructions there.

/// Registers written before are read by products issued after it.
__device__ __forceinline__ void fence_products() {
#ifdef __CUDACC__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  // Registers are memory there, seen at once.
#endif
}
/// Ends a group of products.
__device__ __forceinline__ void commit_products() {
#ifdef __CUDACC__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  simt::commit_products();
#endif
}
/// Waits until at most `groups` groups are unfinished, the latest ones.
template <int groups>
__device__ __forceinline__ void wait_for_products() {
#ifdef __CUDACC__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
#else
  simt::wait_for_products(groups);
#endif
}

/// The compiler may move no use of the registers across it. Indices, not references: an array whose
/// elements' addresses are taken stays in memory when it is long.
template <int n>
__device__ __forceinline__ void hold(float (&registers)[n]) {
#ifdef __CUDACC__
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(registers[i])::"memory");
#else
  (void)registers;
#endif
}
template <int n>
__device__ __forceinline__ void hold(unsigned (&registers)[n]) {
#ifdef __CUDACC__
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+r"(registers[i])::"memory");
#else
  (void)registers;
#endif
}

/// The direction in which an operand in shared memory is contiguous.
enum class Major { k, mn };

/// Descriptor of an operand in shared memory, for an instruction; the steps of wgmma_descriptor.hpp
/// are added to it.
#ifdef __CUDACC__
using MatrixDescriptor = std::uint64_t;
#else
using MatrixDescriptor = simt::MatrixDescriptor;
#endif

/// Descriptor of a tile whose sum runs along its rows.
__device__ __forceinline__ MatrixDescriptor k_major_at(SharedAddress tile) {
#ifdef __CUDACC__
  return k_major_descriptor(tile.value());
#else
  return {tile.value(), 0};
#endif
}
/// Descriptor of a tile of `rows` rows whose sum runs over them.
__device__ __forceinline__ MatrixDescriptor mn_major_at(SharedAddress tile, int rows) {
#ifdef __CUDACC__
  return mn_major_descriptor(tile.value(), rows);
#else
  return {tile.value(), static_cast<unsigned>(rows * panel_row_bytes)};
#endif
}

#ifdef __CUDACC__
// One spelling for each N: the list of D's registers is part of an instruction's text.
#define ATTEST_WGMMA_REGISTERS_64                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ATTEST_WGMMA_REGISTERS_80                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39"
#define ATTEST_WGMMA_REGISTERS_96                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define ATTEST_WGMMA_REGISTERS_112                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55"
#define ATTEST_WGMMA_REGISTERS_128                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define ATTEST_WGMMA_REGISTERS_160                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define ATTEST_WGMMA_REGISTERS_176                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87"
#define ATTEST_WGMMA_REGISTERS_192                                                   \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define ATTEST_WGMMA_REGISTERS_256                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define ATTEST_WGMMA_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ATTEST_WGMMA_D8(i) ATTEST_WGMMA_D4(i), ATTEST_WGMMA_D4(i + 4)
#define ATTEST_WGMMA_D16(i) ATTEST_WGMMA_D8(i), ATTEST_WGMMA_D8(i + 8)
#define ATTEST_WGMMA_D32(i) ATTEST_WGMMA_D16(i), ATTEST_WGMMA_D16(i + 16)
#define ATTEST_WGMMA_D64(i) ATTEST_WGMMA_D32(i), ATTEST_WGMMA_D32(i + 32)
#define ATTEST_WGMMA_D_64 ATTEST_WGMMA_D32(0)
#define ATTEST_WGMMA_D_80 ATTEST_WGMMA_D32(0), ATTEST_WGMMA_D8(32)
#define ATTEST_WGMMA_D_96 ATTEST_WGMMA_D32(0), ATTEST_WGMMA_D16(32)
#define ATTEST_WGMMA_D_112 ATTEST_WGMMA_D32(0), ATTEST_WGMMA_D16(32), ATTEST_WGMMA_D8(48)
#define ATTEST_WGMMA_D_128 ATTEST_WGMMA_D64(0)
#define ATTEST_WGMMA_D_160 ATTEST_WGMMA_D64(0), ATTEST_WGMMA_D16(64)
#define ATTEST_WGMMA_D_176 ATTEST_WGMMA_D64(0), ATTEST_WGMMA_D16(64), ATTEST_WGMMA_D8(80)
#define ATTEST_WGMMA_D_192 ATTEST_WGMMA_D64(0), ATTEST_WGMMA_D32(64)
#define ATTEST_WGMMA_D_256 ATTEST_WGMMA_D64(0), ATTEST_WGMMA_D64(64)
#define ATTEST_WGMMA_SS(N, TYPE, A, B, P, TA, TB)                                              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                                         \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE           \
               " {" ATTEST_WGMMA_REGISTERS_##N "}, %" #A ", %" #B ", p, 1, 1, %" #TA ", %" #TB \
                                               ";\n}"                                          \
               : ATTEST_WGMMA_D_##N                                                            \
               : "l"(a), "l"(b), "r"(int{adds}), "n"(int{a_major == Major::mn}),               \
                 "n"(int{b_major == Major::mn}))
#define ATTEST_WGMMA_RS(N, TYPE, A0, A1, A2, A3, B, P, TB)                                         \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #P                                             \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE               \
               " {" ATTEST_WGMMA_REGISTERS_##N "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B \
                                               ", p, 1, 1, %" #TB ";\n}"                           \
               : ATTEST_WGMMA_D_##N                                                                \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{adds}),               \
                 "n"(int{b_major == Major::mn}))
#define ATTEST_WGMMA_SS_CASES(TYPE)                  \
  if constexpr (N == 64)                             \
    ATTEST_WGMMA_SS(64, TYPE, 32, 33, 34, 35, 36);   \
  else if constexpr (N == 80)                        \
    ATTEST_WGMMA_SS(80, TYPE, 40, 41, 42, 43, 44);   \
  else if constexpr (N == 96)                        \
    ATTEST_WGMMA_SS(96, TYPE, 48, 49, 50, 51, 52);   \
  else if constexpr (N == 112)                       \
    ATTEST_WGMMA_SS(112, TYPE, 56, 57, 58, 59, 60);  \
  else if constexpr (N == 128)                       \
    ATTEST_WGMMA_SS(128, TYPE, 64, 65, 66, 67, 68);  \
  else if constexpr (N == 160)                       \
    ATTEST_WGMMA_SS(160, TYPE, 80, 81, 82, 83, 84);  \
  else if constexpr (N == 176)                       \
    ATTEST_WGMMA_SS(176, TYPE, 88, 89, 90, 91, 92);  \
  else if constexpr (N == 192)                       \
    ATTEST_WGMMA_SS(192, TYPE, 96, 97, 98, 99, 100); \
  else if constexpr (N == 256)                       \
    ATTEST_WGMMA_SS(256, TYPE, 128, 129, 130, 131, 132);
#define ATTEST_WGMMA_RS_CASES(TYPE)                            \
  if constexpr (N == 64)                                       \
    ATTEST_WGMMA_RS(64, TYPE, 32, 33, 34, 35, 36, 37, 38);     \
  else if constexpr (N == 80)                                  \
    ATTEST_WGMMA_RS(80, TYPE, 40, 41, 42, 43, 44, 45, 46);     \
  else if constexpr (N == 96)                                  \
    ATTEST_WGMMA_RS(96, TYPE, 48, 49, 50, 51, 52, 53, 54);     \
  else if constexpr (N == 112)                                 \
    ATTEST_WGMMA_RS(112, TYPE, 56, 57, 58, 59, 60, 61, 62);    \
  else if constexpr (N == 128)                                 \
    ATTEST_WGMMA_RS(128, TYPE, 64, 65, 66, 67, 68, 69, 70);    \
  else if constexpr (N == 160)                                 \
    ATTEST_WGMMA_RS(160, TYPE, 80, 81, 82, 83, 84, 85, 86);    \
  else if constexpr (N == 176)                                 \
    ATTEST_WGMMA_RS(176, TYPE, 88, 89, 90, 91, 92, 93, 94);    \
  else if constexpr (N == 192)                                 \
    ATTEST_WGMMA_RS(192, TYPE, 96, 97, 98, 99, 100, 101, 102); \
  else if constexpr (N == 256)                                 \
    ATTEST_WGMMA_RS(256, TYPE, 128, 129, 130, 131, 132, 133, 134);
#endif

/// The N for which a product is spelled out; the hardware has every multiple of 8 to 256.
template <int N>
inline constexpr bool is_product_width = N == 64 || N == 80 || N == 96 || N == 112 || N == 128 ||
                                         N == 160 || N == 176 || N == 192 || N == 256;

/// D = A B, or D += A B where `adds`: A [64, 16] and B [16, N], both in shared memory.
template <typename T, Major a_major, Major b_major, int half_n>
__device__ __forceinline__ void issue_product(float (&d)[half_n], const MatrixDescriptor& a,
                                              const MatrixDescriptor& b, bool adds) {
  constexpr int N = 2 * half_n;
  static_assert(is_product_width<N>);
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, __half>) {
    ATTEST_WGMMA_SS_CASES("f16")
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
    ATTEST_WGMMA_SS_CASES("bf16")
  }
#else
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  constexpr ElementType type = std::is_same_v<T, __half> ? ElementType::fp16 : ElementType::bf16;
  simt::multiply_group(
      {type, d, N, nullptr, a, b, a_major == Major::mn, b_major == Major::mn, adds},
      __builtin_FILE(), __builtin_LINE());
#endif
}

/// Issues a product with A in registers.
template <typename T, Major b_major, int half_n>
__device__ __forceinline__ void issue_product(float (&d)[half_n], const unsigned (&a)[4],
                                              const MatrixDescriptor& b, bool adds) {
  constexpr int N = 2 * half_n;
  static_assert(is_product_width<N>);
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, __half>) {
    ATTEST_WGMMA_RS_CASES("f16")
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
    ATTEST_WGMMA_RS_CASES("bf16")
  }
#else
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  constexpr ElementType type = std::is_same_v<T, __half> ? ElementType::fp16 : ElementType::bf16;
  simt::multiply_group({type, d, N, a, {}, b, false, b_major == Major::mn, adds}, __builtin_FILE(),
                       __builtin_LINE());
#endif
}

}  // namespace attest
