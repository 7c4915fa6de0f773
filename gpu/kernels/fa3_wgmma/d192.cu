#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr Fa3Variant shapes[] = {
    fa3_variant<this_executor, T,
                Fa3Choice{.dim = 192,
                          .consumers = 2,
                          .key_tile = 64,
                          .k_stages = 3,
                          .v_stages = 3,
                          .q_stages = 1,
                          .overlap = true}>(),
    fa3_variant<this_executor, T,
                Fa3Choice{.dim = 192,
                          .consumers = 2,
                          .key_tile = 64,
                          .k_stages = 3,
                          .v_stages = 3,
                          .q_stages = 1,
                          .overlap = true,
                          .splits = true}>(),
};

}  // namespace

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 192>() {
  return shapes<__half>;
}

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 192>() {
  return shapes<__nv_bfloat16>;
}

}  // namespace attest
