#include "gpu/kernels/bwd_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr BwdChoice plain{.dim = 192, .groups = 3, .k_stages = 1};
constexpr BwdChoice capped{.dim = 192, .groups = 3, .k_stages = 1, .softcap = true};

}  // namespace

template <>
std::span<const BwdVariant> bwd_variants<this_executor, __half, 192>() {
  return bwd_wide_variants_of<this_executor, __half, plain, capped>;
}
template <>
std::span<const BwdVariant> bwd_variants<this_executor, __nv_bfloat16, 192>() {
  return bwd_wide_variants_of<this_executor, __nv_bfloat16, plain, capped>;
}

}  // namespace attest
