// What warpgroups reach beside others that multiply, and whether they slow these.
#include "gpu/microbench/fill_shared.cuh"
#include "gpu/microbench/instruction_chains.cuh"
#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"
#include "gpu/microbench/softmax_tile.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest::microbench {
namespace {

constexpr int depth = 128, a_bytes = 64 * depth * 2;

// What the other warpgroups do: 64 scores or single instructions a thread and step.
template <typename Op>
struct Chains {
  std::uint32_t x[8];
  __device__ Chains() {
    for (unsigned c = 0; c < 8; ++c) x[c] = 0x3f000000U + threadIdx.x * 977U + c * 131U;
  }
  __device__ void step(float c) {
#pragma unroll
    for (int i = 0; i < 64; ++i)
      Op::apply(x[i % 8], x[(i + 3) % 8], __float_as_uint(c), 0x3f004321U);
  }
  __device__ float result() const {
    std::uint32_t all = 0;
    for (const std::uint32_t v : x) all ^= v;
    return __uint_as_float(all);
  }
};
template <int emulated>
struct Softmaxes {
  float s[64], scale[2];
  TwoRows rows;
  std::uint32_t a[8][4];
  __device__ Softmaxes() {
    for (int j = 0; j < 64; ++j)
      s[j] = -0.3F * static_cast<float>((threadIdx.x * 37U + static_cast<unsigned>(j) * 11U) % 64U);
  }
  __device__ void step(float c) {
    softmax<emulated>(s, rows, scale, c, -1);
    pack(s, a);
  }
  __device__ float result() const {
    float all = rows.sum[0] + rows.sum[1];
    for (int j = 0; j < 32; ++j) all += __uint_as_float(a[j / 4][j % 4]);
    return all;
  }
};

// The first `tensor_groups` warpgroups run `steps` of 64 x n x 128 products; the others work until
// the first of these is done, and count.
template <typename Work, int n, bool a_in_registers>
__global__ void __launch_bounds__(n == 256 ? 384 : 512, 1)
    side_by_side(int tensor_groups, int steps, float c, const std::uint16_t* values, float* sink,
                 SmSpan* spans) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ int done;
  __shared__ unsigned long long rounds;
  const int group = warpgroup_of_thread();
  if (threadIdx.x == 0) {
    done = 0;
    rounds = 0;
  }
  constexpr int b_bytes = n * depth * 2;
  fill_shared(shared, values, 2 * a_bytes + 2 * b_bytes);
  float result = 0;
  begin_span(spans[blockIdx.x]);
  if (group < tensor_groups) {
    const std::uint64_t a = k_major_descriptor((SharedAddress(shared) + group * a_bytes).value());
    const std::uint64_t b = k_major_descriptor((SharedAddress(shared) + 2 * a_bytes).value());
    std::uint32_t af[4];
    for (int i = 0; i < 4; ++i)
      af[i] = reinterpret_cast<const std::uint32_t*>(
          shared)[threadIdx.x * 4 + static_cast<unsigned>(i)];
    float d[n / 2];
    for (int i = 0; i < n / 2; ++i) d[i] = 0;
    hold(d);
    hold(af);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t b_now = b + static_cast<unsigned>(step % 2) * (b_bytes / 16U);
      fence_products();
#pragma unroll
      for (int k = 0; k < depth / 16; ++k) {
        if constexpr (a_in_registers) {
          issue_product<__nv_bfloat16, Major::k>(d, af, b_now + k_major_step(k, n), true);
        } else {
          issue_product<__nv_bfloat16, Major::k, Major::k>(d, a + k_major_step(k, 64),
                                                           b_now + k_major_step(k, n), true);
        }
      }
      commit_products();
      wait_for_products<1>();
    }
    wait_for_products<0>();
    hold(d);
    *static_cast<volatile int*>(&done) = 1;
    for (int i = 0; i < n / 2; ++i) result += d[i];
  } else {
    Work work;
    unsigned long long mine = 0;
    const bool alone = tensor_groups == 0;
    while (alone ? mine < static_cast<unsigned>(steps) : *static_cast<volatile int*>(&done) == 0) {
      ++mine;
      work.step(c);
    }
    if (threadIdx.x % 32 == 0) atomicAdd(&rounds, mine);
    result = work.result();
  }
  end_span(spans[blockIdx.x]);
  if (threadIdx.x == 0) spans[blockIdx.x].work = static_cast<std::int64_t>(rounds * 64 * 32);
  sink[blockIdx.x * blockDim.x + threadIdx.x] = result;
}

template <typename Work, int n = 128, bool a_in_registers = false>
Beside beside(const char* name, const char* unit = "lanes/clk/SM") {
  return {name, unit, n, a_in_registers,
          [](int blocks, int tensor_groups, int other_groups, int steps,
             const std::uint16_t* values, float* sink, SmSpan* spans) {
            const auto kernel = side_by_side<Work, n, a_in_registers>;
            constexpr int bytes = 2 * a_bytes + 2 * n * depth * 2;
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
            kernel<<<static_cast<unsigned>(blocks),
                     static_cast<unsigned>(tensor_groups + other_groups) * 128U, bytes>>>(
                tensor_groups, steps, 0.3F, values, sink, spans);
          }};
}

}  // namespace

std::vector<Beside> works_beside() {
  return {
      beside<Softmaxes<0>>("softmax", "scores/clk/SM"),
      beside<Softmaxes<1>>("softmax, 12.5 % emulated", "scores/clk/SM"),
      beside<Softmaxes<2>>("softmax, 25 % emulated", "scores/clk/SM"),
      beside<Chains<Ex2F32>>("ex2.approx.ftz.f32"),
      beside<Chains<FfmaMoving>>("FFMA, 3 registers"),
      beside<Chains<FfmaImmediate>>("FFMA, 2 registers"),
      beside<Chains<FaddMoving>>("FADD, 2 registers"),
      beside<Chains<FmulImmediate>>("FMUL, 1 register"),
      beside<Chains<Fmnmx>>("FMNMX"),
      beside<Chains<CvtBf16x2>>("cvt.rn.bf16x2.f32"),
      beside<Chains<Hfma2Bf16>>("HFMA2.BF16"),
      beside<Chains<Lop3>>("LOP3"),
      beside<Chains<Shfl>>("SHFL"),
      beside<Softmaxes<0>, 64>("softmax", "scores/clk/SM"),
      beside<Softmaxes<0>, 256>("softmax", "scores/clk/SM"),
      beside<Softmaxes<0>, 128, true>("softmax", "scores/clk/SM"),
      beside<Softmaxes<0>, 256, true>("softmax", "scores/clk/SM"),
      beside<Chains<FfmaMoving>, 64>("FFMA, 3 registers"),
      beside<Chains<FfmaMoving>, 256>("FFMA, 3 registers"),
      beside<Chains<FfmaMoving>, 128, true>("FFMA, 3 registers"),
  };
}

}  // namespace attest::microbench
