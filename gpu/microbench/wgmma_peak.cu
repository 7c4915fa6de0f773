// TFLOP/s of bf16 wgmma alone, by N, operand A in shared memory (SS) or registers (RS), warpgroups
// an SM and values.
#include "gpu/microbench/fill_shared.cuh"
#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest::microbench {
namespace {

constexpr int depth = 128, a_bytes = 64 * depth * 2;

// Each warpgroup multiplies its own 64 x 128 A (16 KB) with two B of N x 128 that all share, in
// turn.
template <int n, OperandA a_in>
__global__ void __launch_bounds__(a_in != OperandA::shared && n == 256 ? 256 : 384, 1)
    products(int steps, const std::uint16_t* values, float* sink, SmSpan* spans) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int b_bytes = n * depth * 2;
  const int groups = static_cast<int>(blockDim.x) / 128, group = warpgroup_of_thread();
  fill_shared(shared, values, groups * a_bytes + 2 * b_bytes);
  constexpr Major b_major = a_in == OperandA::registers_b_transposed ? Major::mn : Major::k;
  const std::uint64_t a = k_major_descriptor((SharedAddress(shared) + group * a_bytes).value());
  const std::uint32_t b_address = (SharedAddress(shared) + groups * a_bytes).value();
  const std::uint64_t b =
      b_major == Major::mn ? mn_major_descriptor(b_address, depth) : k_major_descriptor(b_address);
  std::uint32_t af[8][4];
  if constexpr (a_in != OperandA::shared) {
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 4; ++i)
        af[k][i] = reinterpret_cast<const std::uint32_t*>(
            shared)[group * a_bytes / 4 + (k * 4 + i) * 128 + static_cast<int>(threadIdx.x) % 128];
    }
  }
  float d[n / 2];
  for (int i = 0; i < n / 2; ++i) d[i] = 0;
  hold(d);
  begin_span(spans[blockIdx.x]);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t b_now = b + static_cast<unsigned>(step % 2) * (b_bytes / 16U);
    fence_products();
#pragma unroll
    for (int k = 0; k < depth / 16; ++k) {
      const std::uint64_t b_k =
          b_now + (b_major == Major::mn ? mn_major_step(k) : k_major_step(k, n));
      if constexpr (a_in == OperandA::shared) {
        issue_product<__nv_bfloat16, Major::k, b_major>(d, a + k_major_step(k, 64), b_k, true);
      } else {
        issue_product<__nv_bfloat16, b_major>(d, af[k], b_k, true);
      }
    }
    commit_products();
    wait_for_products<1>();
  }
  wait_for_products<0>();
  hold(d);
  end_span(spans[blockIdx.x]);
  float sum = 0;
  for (int i = 0; i < n / 2; ++i) sum += d[i];
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int n, OperandA a_in>
void launch(int blocks, int groups, int steps, const std::uint16_t* values, float* sink,
            SmSpan* spans) {
  const int bytes = groups * a_bytes + 2 * n * depth * 2;
  cudaFuncSetAttribute(products<n, a_in>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  products<n, a_in><<<static_cast<unsigned>(blocks), static_cast<unsigned>(groups) * 128U,
                      static_cast<unsigned>(bytes)>>>(steps, values, sink, spans);
}

template <OperandA a_in>
void launch_width(int n, int blocks, int groups, int steps, const std::uint16_t* values,
                  float* sink, SmSpan* spans) {
  const auto kernel = n == 64                                             ? launch<64, a_in>
                      : n == 128                                          ? launch<128, a_in>
                      : n == 192                                          ? launch<192, a_in>
                      : n == 256                                          ? launch<256, a_in>
                      : launch < a_in == OperandA::registers_b_transposed ? 192
                                                                          : 176,
             a_in > ;
  kernel(blocks, groups, steps, values, sink, spans);
}

}  // namespace

void launch_products(int n, OperandA a, int blocks, int groups, int steps,
                     const std::uint16_t* values, float* sink, SmSpan* spans) {
  const auto kernel = a == OperandA::shared      ? launch_width<OperandA::shared>
                      : a == OperandA::registers ? launch_width<OperandA::registers>
                                                 : launch_width<OperandA::registers_b_transposed>;
  kernel(n, blocks, groups, steps, values, sink, spans);
}

}  // namespace attest::microbench
