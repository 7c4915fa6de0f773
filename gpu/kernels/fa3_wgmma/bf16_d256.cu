#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __nv_bfloat16, 256>() {
  static constexpr Fa3Variant variants[] = {
      fa3_variant<this_executor, __nv_bfloat16,
                  Fa3Choice{.dim = 256,
                            .consumers = 2,
                            .key_tile = 64,
                            .k_stages = 2,
                            .v_stages = 2,
                            .q_stages = 1,
                            .overlap = true}>(),
      fa3_variant<this_executor, __nv_bfloat16,
                  Fa3Choice{.dim = 256,
                            .consumers = 2,
                            .key_tile = 80,
                            .k_stages = 2,
                            .v_stages = 2,
                            .q_stages = 1,
                            .overlap = true}>(),
      fa3_variant<this_executor, __nv_bfloat16,
                  Fa3Choice{.dim = 256,
                            .consumers = 2,
                            .key_tile = 64,
                            .k_stages = 2,
                            .v_stages = 2,
                            .q_stages = 1,
                            .overlap = true,
                            .splits = true}>(),
  };
  return variants;
}

}  // namespace attest
