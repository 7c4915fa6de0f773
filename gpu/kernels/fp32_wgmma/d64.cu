#include <array>

#include "gpu/kernels/fp32_wgmma/compiled.cuh"

namespace attest {
namespace {

constexpr SplitChoice three_groups{.dim = 64,
                                   .consumers = 3,
                                   .key_tile = 64,
                                   .stages = 3,
                                   .o_columns = 64,
                                   .overlap = true,
                                   .ping_pong = true,
                                   .delays = false};
constexpr SplitChoice two_groups = [] {
  SplitChoice c = three_groups;
  c.consumers = 2;
  return c;
}();
/// Three groups have no registers left for what makes delays.
constexpr SplitChoice delayed = [] {
  SplitChoice c = two_groups;
  c.delays = true;
  return c;
}();
constexpr SplitChoice long_tiles{.dim = 64,
                                 .consumers = 2,
                                 .key_tile = 128,
                                 .stages = 2,
                                 .o_columns = 64,
                                 .overlap = false,
                                 .ping_pong = false,
                                 .delays = false};
constexpr SplitChoice of_bf16{.dim = 64,
                              .consumers = 2,
                              .key_tile = 64,
                              .stages = 2,
                              .o_columns = 64,
                              .overlap = false,
                              .ping_pong = false,
                              .delays = false};
constexpr std::array of_fp16{
    split_kernel<Fp16Parts, long_tiles>(), split_kernel<Fp16Parts, three_groups>(),
    split_kernel<Fp16Parts, two_groups>(), split_kernel<Fp16Parts, delayed>()};

}  // namespace

template <>
SplitKernels split_kernels<64>() {
  return {64, of_fp16, split_kernel<Bf16Parts, of_bf16>(), fp32_split<Fp16Parts, 64>,
          fp32_split<Bf16Parts, 64>};
}

}  // namespace attest
