#include "gpu/kernels/fa2_mma/variant.cuh"

namespace attest {

template <>
std::span<const Fa2Variant> fa2_variants<this_executor, __half, 128>() {
  static constexpr Fa2Variant variants[] = {
      fa2_variant<this_executor, Fa2Shape<__half, 128, 128, 64, 4, 2>,
                  Fa2Extras{.persistent = true, .general = true}>(),
      fa2_variant<this_executor, Fa2Shape<__half, 128, 64, 64, 4, 2>, Fa2Extras{.general = true}>(),
      fa2_variant<this_executor, Fa2Shape<__half, 128, 128, 128, 8, 1>>(),
      fa2_variant<this_executor, Fa2Shape<__half, 128, 128, 64, 8, 2>>(),
      fa2_variant<this_executor, Fa2Shape<__half, 128, 128, 32, 4, 3>>(),
      fa2_variant<this_executor, Fa2Shape<__half, 128, 128, 64, 4, 1>>(),
  };
  return variants;
}

}  // namespace attest
