#include "gpu/kernels/bwd_simple/variant.cuh"

namespace attest {

template <>
std::span<const BwdVariant> bwd_variants<this_executor, __nv_bfloat16>() {
  using T = __nv_bfloat16;
  static constexpr BwdVariant variants[] = {
      bwd_variant<this_executor, T, 64, 64, 64>,
      bwd_variant<this_executor, T, 64, 64, 32>,
      bwd_variant<this_executor, T, 64, 32, 64>,
      bwd_variant<this_executor, T, 128, 64, 64>,
      bwd_variant<this_executor, T, 128, 64, 32>,
      bwd_variant<this_executor, T, 128, 32, 64>,
      // Dropout and bias of 64 rows at a time spilled 464 bytes of keys' sums at dim 128.
      bwd_modified_variant<this_executor, T, 64, 64, 64>,
      bwd_modified_variant<this_executor, T, 128, 32, 64>,
  };
  return variants;
}

}  // namespace attest
