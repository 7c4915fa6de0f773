#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr Fa3Choice longer{
    .dim = 64, .consumers = 3, .key_tile = 112, .k_stages = 4, .v_stages = 4, .q_stages = 2};
constexpr Fa3Choice shorter{.dim = 64,
                            .consumers = 3,
                            .key_tile = 64,
                            .k_stages = 8,
                            .v_stages = 8,
                            .q_stages = 2,
                            .overlap = true};
/// 256 rows: lengths that 192 does not divide lose nothing, and four groups wait less for each
/// other.
constexpr Fa3Choice four_groups{
    .dim = 64, .consumers = 4, .key_tile = 64, .k_stages = 6, .v_stages = 6, .q_stages = 2};
constexpr Fa3Choice two_groups{.dim = 64,
                               .consumers = 2,
                               .key_tile = 128,
                               .k_stages = 4,
                               .v_stages = 4,
                               .q_stages = 2,
                               .overlap = true};

}  // namespace

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 64>() {
  return fa3_variants_of<this_executor, __half, longer, shorter, four_groups,
                         with(shorter, &Fa3Choice::splits), with(shorter, &Fa3Choice::ragged)>;
}

/// One type is enough for studies: these, too, are verified.
template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 64>() {
  return fa3_variants_of<this_executor, __nv_bfloat16, longer, shorter, four_groups,
                         with(shorter, &Fa3Choice::splits), with(shorter, &Fa3Choice::ragged),
                         with(two_groups, &Fa3Choice::ping_pong),
                         with(shorter, &Fa3Choice::delays)>;
}

}  // namespace attest
