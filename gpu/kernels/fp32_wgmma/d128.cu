#include <array>

#include "gpu/kernels/fp32_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr SplitChoice in_turn{.dim = 128,
                              .consumers = 2,
                              .key_tile = 64,
                              .stages = 2,
                              .o_columns = 128,
                              .overlap = false,
                              .ping_pong = true,
                              .delays = false};
constexpr SplitChoice delayed = [] {
  SplitChoice c = in_turn;
  c.delays = true;
  return c;
}();
constexpr SplitChoice at_will = [] {
  SplitChoice c = in_turn;
  c.ping_pong = false;
  return c;
}();
/// Three parts leave room for one tile of K and V, and registers for half of the columns.
constexpr SplitChoice of_bf16{.dim = 128,
                              .consumers = 2,
                              .key_tile = 64,
                              .stages = 1,
                              .o_columns = 64,
                              .overlap = false,
                              .ping_pong = false,
                              .delays = false};
constexpr std::array of_fp16{split_kernel<this_executor, Fp16Parts, in_turn>(),
                             split_kernel<this_executor, Fp16Parts, at_will>(),
                             split_kernel<this_executor, Fp16Parts, delayed>()};

}  // namespace

template <>
SplitKernels split_kernels<this_executor, 128>() {
  return {128, of_fp16, split_kernel<this_executor, Bf16Parts, of_bf16>(),
          fp32_split<this_executor, Fp16Parts, 128>, fp32_split<this_executor, Bf16Parts, 128>};
}

}  // namespace attest
