#include "gpu/kernels/fa2_mma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr auto shapes =
    joined(fa2_listed<this_executor, SimtTypes::both, Fa2Shape<T, 256, 128, 64, 8, 2>,
                      Fa2Extras{.persistent = true, .general = true}>(),
           fa2_listed<this_executor, SimtTypes::both, Fa2Shape<T, 256, 64, 64, 4, 1>,
                      Fa2Extras{.general = true, .modified = true}>(),
           fa2_listed<this_executor, SimtTypes::bf16, Fa2Shape<T, 256, 64, 32, 4, 1>>(),
           fa2_listed<this_executor, SimtTypes::fp16, Fa2Shape<T, 256, 128, 32, 8, 3>>());

}  // namespace

template <>
std::span<const Fa2Variant> fa2_variants<this_executor, __half, 256>() {
  return shapes<__half>;
}

template <>
std::span<const Fa2Variant> fa2_variants<this_executor, __nv_bfloat16, 256>() {
  return shapes<__nv_bfloat16>;
}

}  // namespace attest
