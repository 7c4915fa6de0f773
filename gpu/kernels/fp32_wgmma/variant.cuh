#pragma once

#include <cstdint>
#include <span>

#include "gpu/kernels/fp32_wgmma/kernel.cuh"

namespace attest {

/// A compiled attention kernel.
struct SplitKernel {
  SplitChoice choice;
  int query_tile, threads, shared_bytes;
  void (*attend)(SplitProblem, std::int64_t first_block);
};

template <Executor home, typename Parts, SplitChoice choice>
constexpr SplitKernel split_kernel() {
  using Sizes = SplitShape<Parts, choice>;
  return {choice, Sizes::Br, Sizes::threads, Sizes::shared_bytes, fp32_wgmma<home, Sizes>};
}

/// Kernels for head dims up to `dim`: those of fp16 parts, the first the one to take without a
/// reason, and that of the bf16 parts; and those that split.
struct SplitKernels {
  int dim;
  std::span<const SplitKernel> fp16;
  SplitKernel bf16;
  void (*split_fp16)(SplitProblem);
  void (*split_bf16)(SplitProblem);
};

/// Defined, for every D that there is, in a file of its own, so that they are compiled side by
/// side.
template <Executor home, int D>
SplitKernels split_kernels();

}  // namespace attest
