#include "gpu/kernels/bwd_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr BwdChoice two_groups{.dim = 128, .groups = 2, .k_stages = 2, .overlap = true};

constexpr BwdChoice capped{.dim = 128, .groups = 2, .k_stages = 2, .softcap = true};

constexpr BwdChoice two_groups_in_units{.dim = 128,
                                        .groups = 2,
                                        .k_stages = 2,
                                        .overlap = true,
                                        .in_units = true,
                                        .simt = SimtTypes::fp16};
constexpr BwdChoice capped_in_units{.dim = 128,
                                    .groups = 2,
                                    .k_stages = 2,
                                    .softcap = true,
                                    .in_units = true,
                                    .simt = SimtTypes::bf16};

}  // namespace

template <>
std::span<const BwdVariant> bwd_variants<this_executor, __half, 128>() {
  return bwd_variants_of<this_executor, __half, two_groups, capped, two_groups_in_units,
                         capped_in_units>;
}
template <>
std::span<const BwdVariant> bwd_variants<this_executor, __nv_bfloat16, 128>() {
  return bwd_variants_of<this_executor, __nv_bfloat16, two_groups, capped, two_groups_in_units,
                         capped_in_units>;
}

}  // namespace attest
