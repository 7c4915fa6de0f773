#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr Fa3Variant shapes[] = {
    fa3_variant<this_executor, T,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2,
                          .overlap = true}>(),
    fa3_variant<this_executor, T,
                Fa3Choice{.dim = 128,
                          .consumers = 2,
                          .key_tile = 128,
                          .k_stages = 2,
                          .v_stages = 2,
                          .q_stages = 2,
                          .overlap = true}>(),
    fa3_variant<this_executor, T,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2,
                          .overlap = true,
                          .splits = true}>(),
};

/// One type is enough for studies: these, too, are verified.
constexpr Fa3Variant studied[] = {
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2,
                          .overlap = true}>(),
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 2,
                          .key_tile = 128,
                          .k_stages = 2,
                          .v_stages = 2,
                          .q_stages = 2,
                          .overlap = true}>(),
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2,
                          .overlap = true,
                          .splits = true}>(),
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2,
                          .overlap = true,
                          .ping_pong = true}>(),
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2}>(),
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 3,
                          .key_tile = 64,
                          .k_stages = 4,
                          .v_stages = 4,
                          .q_stages = 2,
                          .ping_pong = true}>(),
    fa3_variant<this_executor, __nv_bfloat16,
                Fa3Choice{.dim = 128,
                          .consumers = 2,
                          .key_tile = 128,
                          .k_stages = 2,
                          .v_stages = 2,
                          .q_stages = 2,
                          .overlap = true,
                          .delays = true}>(),
};

}  // namespace

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 128>() {
  return shapes<__half>;
}

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 128>() {
  return studied;
}

}  // namespace attest
