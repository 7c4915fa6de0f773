#include "gpu/kernels/bwd_simple/variant.cuh"

namespace attest {

template <>
std::span<const BwdVariant> bwd_variants<this_executor, float>() {
  using T = float;
  static constexpr BwdVariant variants[] = {
      bwd_variant<this_executor, T, 64, 32, 32>,
      bwd_variant<this_executor, T, 64, 16, 16>,
      bwd_variant<this_executor, T, 128, 32, 32>,
      bwd_variant<this_executor, T, 128, 16, 16>,
      bwd_modified_variant<this_executor, T, 64, 32, 32>,
      bwd_modified_variant<this_executor, T, 128, 32, 32>,
  };
  return variants;
}

}  // namespace attest
