#include <utility>

#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {
namespace {

using Left = ProductForm::Left;

/// The block's shared memory from the first place where a panel may begin.
__device__ unsigned char* first_panel() {
  unsigned char* const shared = dynamic_shared<unsigned char>();
  return shared + (swizzle_bytes - SharedAddress(shared).value() % swizzle_bytes) % swizzle_bytes;
}

/// Copies a multiple of 16 bytes by the whole block; visible to wgmma after a barrier.
__device__ void copy_bytes(unsigned char* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = threadIdx.x * 16; i < bytes; i += blockDim.x * 16) {
    *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
  }
  fence_async_shared();
}

/// Row and column of D that are at d[i] of this thread.
__device__ int row_of(int i) {
  return static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4 +
         i / 2 % 2 * 8;
}
__device__ int column_of(int i) {
  return i / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
}

/// The registers of A [64, 16], columns 16 k on, from a matrix of `depth` columns.
__device__ void load_left(unsigned (&a)[4], const std::byte* from, int k, int depth) {
  for (int i = 0; i < 4; ++i) {
    // Register i of A holds what d[2 i] and d[2 i + 1] of a D [64, 16] would.
    const int at = row_of(2 * i) * depth + 16 * k + column_of(2 * i);
    a[i] = *reinterpret_cast<const unsigned*>(from + 2 * at);
  }
}

// The whole of a single-tile product; kernels differ from it by what they do while one runs.
template <typename T, int N, Left left, Major right>
__global__ void __launch_bounds__(warpgroup_threads) product(ProductOperands p) {
  // A last: it then lies past 128 KiB, where the highest bit of an address is set, for the largest
  // B.
  unsigned char* const b = first_panel();
  unsigned char* const a = b + p.b_bytes;
  if (left != Left::registers) copy_bytes(a, p.a, p.a_bytes);
  copy_bytes(b, p.b, p.b_bytes);
  __syncthreads();

  float d[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) d[i] = p.d[row_of(i) * N + column_of(i)];

  const std::uint64_t of_a = left == Left::k_major
                                 ? k_major_descriptor(SharedAddress(a).value())
                                 : mn_major_descriptor(SharedAddress(a).value(), p.depth);
  const std::uint64_t of_b = right == Major::k
                                 ? k_major_descriptor(SharedAddress(b).value())
                                 : mn_major_descriptor(SharedAddress(b).value(), p.depth);
  for (int k = 0; k < p.depth / 16; ++k) {
    const std::uint64_t b_k = of_b + (right == Major::k ? k_major_step(k, N) : mn_major_step(k));
    if constexpr (left == Left::registers) {
      unsigned a_k[4];
      load_left(a_k, p.a, k, p.depth);
      hold(d);
      hold(a_k);
      fence_products();
      issue_product<T, right>(d, a_k, b_k, p.adds || k > 0);
      commit_products();
      wait_for_products<0>();
      hold(d);
    } else {
      constexpr Major a_major = left == Left::k_major ? Major::k : Major::mn;
      const std::uint64_t a_k =
          of_a + (a_major == Major::k ? k_major_step(k, 64) : mn_major_step(k));
      hold(d);
      fence_products();
      issue_product<T, a_major, right>(d, a_k, b_k, p.adds || k > 0);
      commit_products();
      wait_for_products<0>();
      hold(d);
    }
  }
#pragma unroll
  for (int i = 0; i < N / 2; ++i) p.d[row_of(i) * N + column_of(i)] = d[i];
}

__global__ void __launch_bounds__(warpgroup_threads)
    two_groups(const std::byte* a, const std::byte* b, const std::byte* c, float* d) {
  constexpr int bytes = 64 * panel_row_bytes, count = 64 * 64;
  unsigned char* const shared = first_panel();
  copy_bytes(shared, a, bytes);
  copy_bytes(shared + bytes, b, bytes);
  copy_bytes(shared + 2 * bytes, c, bytes);
  __syncthreads();
  const std::uint64_t of_a = k_major_descriptor(SharedAddress(shared).value());
  const std::uint64_t of_b = k_major_descriptor(SharedAddress(shared + bytes).value());
  const std::uint64_t of_c = k_major_descriptor(SharedAddress(shared + 2 * bytes).value());
  float first[32], second[32];
  fence_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    issue_product<__nv_bfloat16, Major::k, Major::k>(first, of_a + k_major_step(k, 64),
                                                     of_b + k_major_step(k, 64), k > 0);
  }
  commit_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    issue_product<__nv_bfloat16, Major::k, Major::k>(second, of_a + k_major_step(k, 64),
                                                     of_c + k_major_step(k, 64), k > 0);
  }
  commit_products();
  wait_for_products<1>();
  hold(first);
#pragma unroll
  for (int i = 0; i < 32; ++i) d[row_of(i) * 64 + column_of(i)] = first[i];
  wait_for_products<0>();
  hold(second);
#pragma unroll
  for (int i = 0; i < 32; ++i) d[count + row_of(i) * 64 + column_of(i)] = second[i];
}

template <typename T, int N, Left left, Major right>
constexpr ProductForm form() {
  return {.type = std::is_same_v<T, __half> ? ElementType::fp16 : ElementType::bf16,
          .width = N,
          .left = left,
          .is_right_k_major = right == Major::k,
          .launch = [](const ProductOperands& operands, Device& device) {
            const std::size_t in_shared =
                (left == Left::registers ? 0 : operands.a_bytes) + operands.b_bytes;
            launch(product<T, N, left, right>, dim3(1), dim3(warpgroup_threads),
                   in_shared + swizzle_bytes, device, operands);
          }};
}

// Each width with A in shared memory and in registers, and with B in both directions; each
// direction of A with each of B; each type with all of these. Not their cross product: every kernel
// costs half a second to compile.
using F = __half;
using B = __nv_bfloat16;
constexpr ProductForm forms[] = {
    form<F, 64, Left::k_major, Major::k>(),    form<B, 64, Left::registers, Major::mn>(),
    form<B, 80, Left::mn_major, Major::k>(),   form<F, 80, Left::registers, Major::mn>(),
    form<F, 96, Left::k_major, Major::mn>(),   form<B, 96, Left::registers, Major::k>(),
    form<B, 112, Left::mn_major, Major::mn>(), form<F, 112, Left::registers, Major::k>(),
    form<B, 128, Left::k_major, Major::k>(),   form<B, 128, Left::registers, Major::mn>(),
    form<F, 160, Left::mn_major, Major::k>(),  form<F, 160, Left::registers, Major::mn>(),
    form<B, 176, Left::k_major, Major::mn>(),  form<B, 176, Left::registers, Major::k>(),
    form<F, 192, Left::mn_major, Major::mn>(), form<F, 192, Left::registers, Major::k>(),
    form<B, 256, Left::k_major, Major::k>(),   form<B, 256, Left::registers, Major::mn>(),
};

template <int... eighths>
std::vector<int> widths(std::integer_sequence<int, eighths...>) {
  std::vector<int> found;
  ((is_product_width<8 * eighths> ? found.push_back(8 * eighths) : void()), ...);
  return found;
}

}  // namespace

std::span<const ProductForm> product_forms() {
  return forms;
}

std::vector<int> product_widths() {
  return widths(std::make_integer_sequence<int, 33>());
}

void launch_two_groups(const std::byte* a, const std::byte* b, const std::byte* c, float* d,
                       Device& device) {
  launch(two_groups, dim3(1), dim3(warpgroup_threads), 3 * 64 * panel_row_bytes + swizzle_bytes,
         device, a, b, c, d);
}

}  // namespace attest
