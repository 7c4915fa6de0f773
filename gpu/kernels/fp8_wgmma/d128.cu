#include "gpu/kernels/fp8_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr Fa3Choice overlapped{.dim = 128,
                               .consumers = 2,
                               .key_tile = 128,
                               .k_stages = 3,
                               .v_stages = 2,
                               .q_stages = 2,
                               .o_panels = 2,
                               .overlap = true};
constexpr Fa3Choice in_turns = with(overlapped, &Fa3Choice::ping_pong);

}  // namespace

template <>
std::span<const Fp8Variant> fp8_variants<this_executor, __half, 128>() {
  return fp8_variants_of<this_executor, __half, overlapped>;
}

/// One type is enough for studies: these, too, are verified.
template <>
std::span<const Fp8Variant> fp8_variants<this_executor, __nv_bfloat16, 128>() {
  return fp8_variants_of<this_executor, __nv_bfloat16, overlapped, in_turns>;
}

}  // namespace attest
