// Scores per clk and SM of a softmax whose exponentials go partly to MUFU, partly to FMA and ALU.
#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"
#include "gpu/microbench/softmax_tile.cuh"

namespace attest::microbench {
namespace {

template <int emulated>
__global__ void __launch_bounds__(384, 1)
    softmaxes(int steps, float c, float* sink, SmSpan* spans) {
  float s[64], scale[2];
  for (int j = 0; j < 64; ++j)
    s[j] = -c * static_cast<float>((threadIdx.x * 37U + static_cast<unsigned>(j) * 11U) % 64U);
  TwoRows rows;
  std::uint32_t a[8][4];
  begin_span(spans[blockIdx.x]);
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    softmax<emulated>(s, rows, scale, c, -1);
    pack(s, a);
  }
  end_span(spans[blockIdx.x]);
  float sum = rows.sum[0] + rows.sum[1];
  for (int j = 0; j < 32; ++j) sum += __uint_as_float(a[j / 4][j % 4]);
  sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

}  // namespace

void launch_softmaxes(int emulated, int blocks, int threads, int steps, float* sink,
                      SmSpan* spans) {
  const auto kernel = emulated == 0   ? softmaxes<0>
                      : emulated == 1 ? softmaxes<1>
                      : emulated == 2 ? softmaxes<2>
                      : emulated == 3 ? softmaxes<3>
                      : emulated == 4 ? softmaxes<4>
                                      : softmaxes<8>;
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads)>>>(steps, 0.3F, sink,
                                                                            spans);
}

}  // namespace attest::microbench
