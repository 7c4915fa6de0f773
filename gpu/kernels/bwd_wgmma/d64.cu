#include "gpu/kernels/bwd_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr BwdChoice three_groups{.dim = 64, .groups = 3, .k_stages = 2};
constexpr BwdChoice two_groups{.dim = 64, .groups = 2, .k_stages = 2, .overlap = true};

constexpr BwdChoice capped{.dim = 64, .groups = 2, .k_stages = 2, .softcap = true};

}  // namespace

template <>
std::span<const BwdVariant> bwd_variants<this_executor, __half, 64>() {
  return bwd_variants_of<this_executor, __half, three_groups, two_groups, capped>;
}
template <>
std::span<const BwdVariant> bwd_variants<this_executor, __nv_bfloat16, 64>() {
  return bwd_variants_of<this_executor, __nv_bfloat16, three_groups, two_groups, capped>;
}

}  // namespace attest
