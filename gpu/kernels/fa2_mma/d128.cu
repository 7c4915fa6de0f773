#include "gpu/kernels/fa2_mma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr auto shapes =
    joined(fa2_listed<this_executor, SimtTypes::both, Fa2Shape<T, 128, 128, 64, 4, 2>,
                      Fa2Extras{.persistent = true, .general = true}>(),
           fa2_listed<this_executor, SimtTypes::both, Fa2Shape<T, 128, 64, 64, 4, 2>,
                      Fa2Extras{.general = true, .modified = true}>(),
           fa2_listed<this_executor, SimtTypes::fp16, Fa2Shape<T, 128, 128, 128, 8, 1>,
                      Fa2Extras{.every_step = std::is_same_v<T, __half>}>(),
           fa2_listed<this_executor, SimtTypes::fp16, Fa2Shape<T, 128, 128, 64, 8, 2>>(),
           fa2_listed<this_executor, SimtTypes::both, Fa2Shape<T, 128, 128, 32, 4, 3>>(),
           fa2_listed<this_executor, SimtTypes::bf16, Fa2Shape<T, 128, 128, 64, 4, 1>>());

}  // namespace

template <>
std::span<const Fa2Variant> fa2_variants<this_executor, __half, 128>() {
  return shapes<__half>;
}

template <>
std::span<const Fa2Variant> fa2_variants<this_executor, __nv_bfloat16, 128>() {
  return shapes<__nv_bfloat16>;
}

}  // namespace attest
