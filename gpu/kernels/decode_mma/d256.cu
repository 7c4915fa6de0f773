#include "gpu/kernels/decode_mma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr DecodeVariant shapes[] = {
    cascade_variant<this_executor, DecodeShape<T, 256, 1, 16, 4, 3>>(),
};

}  // namespace

template <>
std::span<const DecodeVariant> decode_variants<this_executor, __half, 256>() {
  return shapes<__half>;
}

template <>
std::span<const DecodeVariant> decode_variants<this_executor, __nv_bfloat16, 256>() {
  return shapes<__nv_bfloat16>;
}

}  // namespace attest
