#include <array>

#include "gpu/kernels/fp32_wgmma/variant.cuh"

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
constexpr std::array of_fp16{split_kernel<this_executor, Fp16Parts, long_tiles>(),
                             split_kernel<this_executor, Fp16Parts, three_groups>(),
                             split_kernel<this_executor, Fp16Parts, two_groups>(),
                             split_kernel<this_executor, Fp16Parts, delayed>()};

}  // namespace

template <>
SplitKernels split_kernels<this_executor, 64>() {
  return {64, of_fp16, split_kernel<this_executor, Bf16Parts, of_bf16>(),
          fp32_split<this_executor, Fp16Parts, 64>, fp32_split<this_executor, Bf16Parts, 64>};
}

}  // namespace attest
