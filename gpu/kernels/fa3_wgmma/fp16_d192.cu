#include "gpu/kernels/fa3_wgmma/variant.cuh"

namespace attest {

template <>
std::span<const Fa3Variant> fa3_variants<this_executor, __half, 192>() {
  static constexpr Fa3Variant variants[] = {
      fa3_variant<this_executor, __half,
                  Fa3Choice{.dim = 192,
                            .consumers = 2,
                            .key_tile = 64,
                            .k_stages = 3,
                            .v_stages = 3,
                            .q_stages = 1,
                            .overlap = true}>(),
      fa3_variant<this_executor, __half,
                  Fa3Choice{.dim = 192,
                            .consumers = 2,
                            .key_tile = 64,
                            .k_stages = 3,
                            .v_stages = 3,
                            .q_stages = 1,
                            .overlap = true,
                            .splits = true}>(),
  };
  return variants;
}

}  // namespace attest
