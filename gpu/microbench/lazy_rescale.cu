// What it costs to rescale O (64 x 128 a warpgroup) with every tile of 64 x 128 scores, and to ask
// whether it must be.
#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"
#include "gpu/microbench/softmax_tile.cuh"

namespace attest::microbench {
namespace {

template <Rescale rescale>
__global__ void __launch_bounds__(256, 1)
    tiles(int steps, float c, float slack, float* sink, SmSpan* spans) {
  float s[64], o[64], scale[2] = {1, 1};
  TwoRows rows;
  std::uint32_t a[8][4];
  for (int j = 0; j < 64; ++j)
    o[j] = s[j] =
        -c * static_cast<float>((threadIdx.x * 37U + static_cast<unsigned>(j) * 11U) % 64U);
  begin_span(spans[blockIdx.x]);
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    const bool moved = softmax<0>(s, rows, scale, c, rescale == Rescale::on_demand ? slack : -1);
    pack(s, a);
    if (rescale == Rescale::always || (rescale == Rescale::on_demand && moved)) {
#pragma unroll
      for (int j = 0; j < 64; ++j) o[j] *= scale[j / 2 % 2];
    }
    if (rescale == Rescale::on_demand && slack == 0) rows.m[0] = rows.m[1] = -1;
  }
  end_span(spans[blockIdx.x]);
  float all = rows.sum[0] + rows.sum[1];
  for (int j = 0; j < 64; ++j) all += o[j] + __uint_as_float(a[j / 8][j % 4]);
  sink[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

}  // namespace

void launch_rescales(Rescale rescale, int blocks, int threads, int steps, float slack, float* sink,
                     SmSpan* spans) {
  const auto kernel = rescale == Rescale::never       ? tiles<Rescale::never>
                      : rescale == Rescale::on_demand ? tiles<Rescale::on_demand>
                                                      : tiles<Rescale::always>;
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads)>>>(steps, 0.3F, slack,
                                                                            sink, spans);
}

}  // namespace attest::microbench
