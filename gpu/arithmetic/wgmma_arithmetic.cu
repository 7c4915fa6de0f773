#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <type_traits>

#include "gpu/arithmetic/arithmetic_kernels.hpp"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma.cuh"

// m64n8, the narrowest product, TF32 and codes: no kernel needs them, so they are no primitives.
#define ATTEST_WGMMA_N8(FORM, TAIL, ...)                                                         \
  asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n8" FORM \
               " {%0, %1, %2, %3}, " TAIL ";\n}"                                                 \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
               : __VA_ARGS__)

namespace attest {
namespace {

constexpr int core_bytes = 128;  // 8 rows of 16 bytes: a core matrix of tiles without swizzle
constexpr int chunk_bytes = 16, most_steps = 4;

/// Descriptor of a tile without swizzle: core matrices of the next 16 bytes of depth are
/// `leading_bytes` away, those of the next 8 rows 128.
__device__ std::uint64_t unswizzled_descriptor(unsigned address, unsigned leading_bytes) {
  return (address & 0x3ffffU) >> 4 | std::uint64_t{leading_bytes >> 4} << 16 |
         std::uint64_t{core_bytes >> 4} << 32;
}

template <typename T>
inline constexpr bool is_e4m3 = std::is_same_v<T, __nv_fp8_e4m3>;

/// Products of codes: FORM names both formats.
#define ATTEST_WGMMA_CODES(Left, Right, ISSUE)   \
  if constexpr (is_e4m3<Left> && is_e4m3<Right>) \
    ISSUE("k32.f32.e4m3.e4m3");                  \
  else if constexpr (is_e4m3<Left>)              \
    ISSUE("k32.f32.e4m3.e5m2");                  \
  else if constexpr (is_e4m3<Right>)             \
    ISSUE("k32.f32.e5m2.e4m3");                  \
  else                                           \
    ISSUE("k32.f32.e5m2.e5m2")

template <typename T, typename Right>
__device__ void issue_n8(float (&d)[4], std::uint64_t a, std::uint64_t b) {
  if constexpr (sizeof(T) == 1) {
#define ATTEST_ISSUE(FORM) ATTEST_WGMMA_N8(FORM, "%4, %5, p, 1, 1", "l"(a), "l"(b))
    ATTEST_WGMMA_CODES(T, Right, ATTEST_ISSUE);
#undef ATTEST_ISSUE
  } else if constexpr (std::is_same_v<T, __half>) {
    ATTEST_WGMMA_N8("k16.f32.f16.f16", "%4, %5, p, 1, 1, 0, 0", "l"(a), "l"(b));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    ATTEST_WGMMA_N8("k16.f32.bf16.bf16", "%4, %5, p, 1, 1, 0, 0", "l"(a), "l"(b));
  } else {
    ATTEST_WGMMA_N8("k8.f32.tf32.tf32", "%4, %5, p, 1, 1", "l"(a), "l"(b));
  }
}
template <typename T, typename Right>
__device__ void issue_n8(float (&d)[4], const unsigned (&a)[4], std::uint64_t b) {
  if constexpr (sizeof(T) == 1) {
#define ATTEST_ISSUE(FORM)                                                                \
  ATTEST_WGMMA_N8(FORM, "{%4, %5, %6, %7}, %8, p, 1, 1", "r"(a[0]), "r"(a[1]), "r"(a[2]), \
                  "r"(a[3]), "l"(b))
    ATTEST_WGMMA_CODES(T, Right, ATTEST_ISSUE);
#undef ATTEST_ISSUE
  } else if constexpr (std::is_same_v<T, __half>) {
    ATTEST_WGMMA_N8("k16.f32.f16.f16", "{%4, %5, %6, %7}, %8, p, 1, 1, 0", "r"(a[0]), "r"(a[1]),
                    "r"(a[2]), "r"(a[3]), "l"(b));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    ATTEST_WGMMA_N8("k16.f32.bf16.bf16", "{%4, %5, %6, %7}, %8, p, 1, 1, 0", "r"(a[0]), "r"(a[1]),
                    "r"(a[2]), "r"(a[3]), "l"(b));
  } else {
    ATTEST_WGMMA_N8("k8.f32.tf32.tf32", "{%4, %5, %6, %7}, %8, p, 1, 1", "r"(a[0]), "r"(a[1]),
                    "r"(a[2]), "r"(a[3]), "l"(b));
  }
}

/// A tile of `rows` rows in shared memory, by all threads: element (row, k) of `get`.
template <typename Word, typename Get>
__device__ void store_tile(unsigned char* tile, int rows, int depth, const Get& get) {
  constexpr int in_chunk = chunk_bytes / static_cast<int>(sizeof(Word));
  for (int i = static_cast<int>(threadIdx.x); i < rows * depth; i += warpgroup_threads) {
    const int row = i / depth, k = i % depth;
    const int at = (k / in_chunk * (rows / 8) + row / 8) * core_bytes + row % 8 * chunk_bytes;
    reinterpret_cast<Word*>(tile + at)[k % in_chunk] = static_cast<Word>(get(row, k));
  }
}

template <typename T, typename Right, WgmmaLeft left, int steps>
__global__ void __launch_bounds__(warpgroup_threads)
    products(const std::uint32_t* a, const std::uint32_t* b, const float* c, float* d) {
  using Word = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>>;
  constexpr int step_depth = 32 / static_cast<int>(sizeof(Word)), depth = steps * step_depth;
  __shared__ __align__(128) unsigned char a_tile[64 * 32 * steps], b_tile[8 * 32 * steps];
  const int block = static_cast<int>(blockIdx.x);
  const std::uint32_t* const A = a + block * 64 * depth;
  const std::uint32_t* const B = b + block * depth * 8;
  store_tile<Word>(a_tile, 64, depth, [&](int row, int k) { return A[row * depth + k]; });
  store_tile<Word>(b_tile, 8, depth, [&](int row, int k) { return B[k * 8 + row]; });
  fence_async_shared();
  __syncthreads();

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = 16 * warp + lane / 4, t = lane % 4;
  const auto place = [&](int i) { return (block * 64 + row + i / 2 * 8) * 8 + 2 * t + i % 2; };
  float df[4];
  for (int i = 0; i < 4; ++i) df[i] = c[place(i)];
  unsigned af[steps][4];
  for (int s = 0; s < steps; ++s) {
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t* const at = A + (row + r % 2 * 8) * depth + s * step_depth;
      if constexpr (sizeof(Word) == 1) {
        const int k = 4 * t + r / 2 * 16;
        af[s][r] = at[k] | at[k + 1] << 8 | at[k + 2] << 16 | at[k + 3] << 24;
      } else if constexpr (sizeof(Word) == 2) {
        const int k = 2 * t + r / 2 * 8;
        af[s][r] = at[k] | at[k + 1] << 16;
      } else {
        af[s][r] = at[t + r / 2 * 4];
      }
    }
    hold(af[s]);
  }
  const std::uint64_t a_start =
      unswizzled_descriptor(SharedAddress(a_tile).value(), 8 * core_bytes);
  const std::uint64_t b_start = unswizzled_descriptor(SharedAddress(b_tile).value(), core_bytes);
  hold(df);
  fence_products();
#pragma unroll
  for (int s = 0; s < steps; ++s) {  // two chunks a step, in units of 16 bytes
    const std::uint64_t b_step = b_start + static_cast<unsigned>(s * 2 * core_bytes / 16);
    if constexpr (left == WgmmaLeft::shared) {
      issue_n8<T, Right>(df, a_start + static_cast<unsigned>(s * 2 * 8 * core_bytes / 16), b_step);
    } else {
      issue_n8<T, Right>(df, af[s], b_step);
    }
  }
  commit_products();
  wait_for_products<0>();
  hold(df);
  for (int i = 0; i < 4; ++i) d[place(i)] = df[i];
}

template <typename T, typename Right, WgmmaLeft left>
auto kernel_of(int steps) {
  return steps == 1 ? products<T, Right, left, 1> : products<T, Right, left, most_steps>;
}
template <typename T, typename Right>
auto kernel_of(WgmmaLeft left, int steps) {
  return left == WgmmaLeft::shared ? kernel_of<T, Right, WgmmaLeft::shared>(steps)
                                   : kernel_of<T, Right, WgmmaLeft::registers>(steps);
}

/// visit() with the type that stands for a format of codes.
template <typename Visit>
auto with_code_type(ElementType type, const Visit& visit) {
  if (type == ElementType::e4m3) return visit(std::type_identity<__nv_fp8_e4m3>{});
  if (type == ElementType::e5m2) return visit(std::type_identity<__nv_fp8_e5m2>{});
  no_version_for(type);
}

auto kernel_of(ElementType a_type, ElementType b_type, WgmmaLeft left, int steps) {
  if (is_code(a_type)) {
    return with_code_type(a_type, [&]<typename T>(std::type_identity<T>) {
      return with_code_type(b_type, [&]<typename Right>(std::type_identity<Right>) {
        return kernel_of<T, Right>(left, steps);
      });
    });
  }
  return with_cuda_type(
      a_type, [&]<typename T>(std::type_identity<T>) { return kernel_of<T, T>(left, steps); });
}

}  // namespace

void launch_wgmma_products(ElementType a_type, ElementType b_type, WgmmaLeft left,
                           const std::uint32_t* a, const std::uint32_t* b, const float* c, float* d,
                           int blocks, int steps) {
  const auto kernel = kernel_of(a_type, b_type, left, steps);
  kernel<<<static_cast<unsigned>(blocks), warpgroup_threads>>>(a, b, c, d);
}

}  // namespace attest
