#include "gpu/kernels/bwd_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr BwdChoice three_groups{.dim = 64, .groups = 3, .k_stages = 2};
constexpr BwdChoice two_groups{
    .dim = 64, .groups = 2, .k_stages = 2, .overlap = true, .simt = SimtTypes::bf16};

constexpr BwdChoice capped{.dim = 64, .groups = 2, .k_stages = 2, .softcap = true};

constexpr BwdChoice three_groups_in_units{
    .dim = 64, .groups = 3, .k_stages = 2, .in_units = true, .simt = SimtTypes::bf16};
constexpr BwdChoice two_groups_in_units{.dim = 64,
                                        .groups = 2,
                                        .k_stages = 2,
                                        .overlap = true,
                                        .in_units = true,
                                        .simt = SimtTypes::fp16};
constexpr BwdChoice capped_in_units{.dim = 64,
                                    .groups = 2,
                                    .k_stages = 2,
                                    .softcap = true,
                                    .in_units = true,
                                    .simt = SimtTypes::bf16};

}  // namespace

template <>
std::span<const BwdVariant> bwd_variants<this_executor, __half, 64>() {
  return bwd_variants_of<this_executor, __half, three_groups, two_groups, capped,
                         three_groups_in_units, two_groups_in_units, capped_in_units>;
}
template <>
std::span<const BwdVariant> bwd_variants<this_executor, __nv_bfloat16, 64>() {
  return bwd_variants_of<this_executor, __nv_bfloat16, three_groups, two_groups, capped,
                         three_groups_in_units, two_groups_in_units, capped_in_units>;
}

}  // namespace attest
