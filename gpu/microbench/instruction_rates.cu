// Lanes per clk and SM of single instructions, each as independent chains in 16 warps an SM.
#include "gpu/microbench/instruction_chains.cuh"
#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"

namespace attest::microbench {
namespace {

template <typename Op>
__global__ void __launch_bounds__(chain_threads, 1)
    chains_of(int iterations, std::uint32_t a, std::uint32_t b, std::uint32_t* sink,
              SmSpan* spans) {
  std::uint32_t x[chains];
  for (int c = 0; c < chains; ++c) x[c] = a + threadIdx.x * 977U + static_cast<unsigned>(c) * 131U;
  begin_span(spans[blockIdx.x]);
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int u = 0; u < chain_unroll; ++u) {
#pragma unroll
      for (int c = 0; c < chains; ++c) Op::apply(x[c], x[(c + 3) % chains], a, b);
    }
  }
  end_span(spans[blockIdx.x]);
  std::uint32_t all = 0;
  for (int c = 0; c < chains; ++c) all ^= x[c];
  sink[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

template <typename Op>
Instruction rate(const char* name) {
  return {name, [](int blocks, int iterations, std::uint32_t* sink, SmSpan* spans) {
            chains_of<Op><<<static_cast<unsigned>(blocks), chain_threads>>>(
                iterations, 0x3f801234U, 0x3f004321U, sink, spans);
          }};
}

}  // namespace

std::vector<Instruction> instructions() {
  return {
      rate<Ffma>("FFMA"),
      rate<FfmaMoving>("FFMA, 3 registers"),
      rate<FfmaImmediate>("FFMA, 2 registers"),
      rate<Fadd>("FADD"),
      rate<FaddRm>("FADD.RM"),
      rate<Fmul>("FMUL"),
      rate<FmulImmediate>("FMUL, 1 register"),
      rate<Fmnmx>("FMNMX"),
      rate<Imnmx>("VIMNMX"),
      rate<Ex2F32>("ex2.approx.ftz.f32"),
      rate<Ex2F16>("ex2.approx.f16"),
      rate<Ex2F16x2>("ex2.approx.f16x2"),
      rate<Ex2Bf16x2>("ex2.approx.ftz.bf16x2"),
      rate<TanhF16x2>("tanh.approx.f16x2"),
      rate<Rsqrt>("rsqrt.approx.ftz.f32"),
      rate<CvtBf16x2>("cvt.rn.bf16x2.f32"),
      rate<CvtF16x2>("cvt.rn.f16x2.f32"),
      rate<WidenF16>("cvt.f32.f16"),
      rate<FloatToInt>("F2I"),
      rate<RoundFloat>("FRND"),
      rate<Hfma2Bf16>("HFMA2.BF16"),
      rate<Hfma2F16>("HFMA2"),
      rate<Hmnmx2Bf16>("HMNMX2.BF16"),
      rate<Hmnmx2F16>("HMNMX2"),
      rate<ShiftAdd>("shift and add, LEA or IMAD"),
      rate<Iadd3>("IADD3"),
      rate<Imad>("IMAD"),
      rate<Lop3>("LOP3"),
      rate<Prmt>("PRMT"),
      rate<Select>("SEL"),
      rate<CompareSelect>("ISETP and SEL"),
      rate<Shfl>("SHFL"),
      rate<Exp2Cubic>("exp2 by a cubic"),
  };
}

}  // namespace attest::microbench
