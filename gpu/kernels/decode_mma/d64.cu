#include "gpu/kernels/decode_mma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr DecodeVariant shapes[] = {
    decode_variant<this_executor, DecodeShape<T, 64, 1, 16, 4, 6>>(),
    decode_variant<this_executor, DecodeShape<T, 64, 1, 16, 8, 6>>(),
    cascade_variant<this_executor, DecodeShape<T, 64, 2, 16, 4, 6>>(),
};

}  // namespace

template <>
std::span<const DecodeVariant> decode_variants<this_executor, __half, 64>() {
  return shapes<__half>;
}

template <>
std::span<const DecodeVariant> decode_variants<this_executor, __nv_bfloat16, 64>() {
  return shapes<__nv_bfloat16>;
}

}  // namespace attest
