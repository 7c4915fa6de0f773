#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr Fa3Choice serial{
    .dim = 128, .consumers = 3, .key_tile = 64, .k_stages = 4, .v_stages = 4, .q_stages = 2};
constexpr Fa3Choice overlapped = with(serial, &Fa3Choice::overlap);
constexpr Fa3Choice two_groups{.dim = 128,
                               .consumers = 2,
                               .key_tile = 128,
                               .k_stages = 2,
                               .v_stages = 2,
                               .q_stages = 2,
                               .overlap = true};

}  // namespace

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 128>() {
  return fa3_variants_of<this_executor, __half, overlapped, two_groups,
                         with(overlapped, &Fa3Choice::splits),
                         with(overlapped, &Fa3Choice::ragged)>;
}

/// One type is enough for studies: these, too, are verified.
template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 128>() {
  return fa3_variants_of<this_executor, __nv_bfloat16, overlapped, two_groups,
                         with(overlapped, &Fa3Choice::splits), with(overlapped, &Fa3Choice::ragged),
                         with(overlapped, &Fa3Choice::ping_pong), serial,
                         with(serial, &Fa3Choice::ping_pong), with(two_groups, &Fa3Choice::delays)>;
}

}  // namespace attest
