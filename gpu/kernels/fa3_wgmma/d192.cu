#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
namespace {

constexpr Fa3Choice tiles{.dim = 192,
                          .consumers = 2,
                          .key_tile = 64,
                          .k_stages = 3,
                          .v_stages = 3,
                          .q_stages = 1,
                          .o_panels = 1,
                          .overlap = true};

}  // namespace

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 192>() {
  return fa3_variants_of<this_executor, __half, tiles, with(tiles, &Fa3Choice::splits)>;
}

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 192>() {
  return fa3_variants_of<this_executor, __nv_bfloat16, tiles, with(tiles, &Fa3Choice::splits)>;
}

}  // namespace attest
