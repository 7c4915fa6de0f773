#pragma once

#include "gpu/kernels/fp32_wgmma/kernel.cuh"
#include "gpu/kernels/fp32_wgmma/variant.cuh"

namespace attest {

template <typename Parts, SplitChoice choice>
constexpr SplitKernel split_kernel() {
  using Sizes = SplitShape<Parts, choice>;
  return {choice, Sizes::Br, Sizes::threads, Sizes::shared_bytes, fp32_wgmma<Sizes>};
}

}  // namespace attest
