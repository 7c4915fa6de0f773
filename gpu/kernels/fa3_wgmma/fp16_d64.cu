#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 64>() {
  static constexpr Fa3Variant variants[] = {
      fa3_variant<this_executor, __half,
                  Fa3Choice{.dim = 64,
                            .consumers = 3,
                            .key_tile = 112,
                            .k_stages = 4,
                            .v_stages = 4,
                            .q_stages = 2}>(),
      fa3_variant<this_executor, __half,
                  Fa3Choice{.dim = 64,
                            .consumers = 3,
                            .key_tile = 64,
                            .k_stages = 4,
                            .v_stages = 4,
                            .q_stages = 2}>(),
      fa3_variant<this_executor, __half,
                  Fa3Choice{.dim = 64,
                            .consumers = 3,
                            .key_tile = 64,
                            .k_stages = 4,
                            .v_stages = 4,
                            .q_stages = 2,
                            .splits = true}>(),
  };
  return variants;
}

}  // namespace attest
