#include "gpu/kernels/decode_mma/variant.cuh"

namespace attest {
namespace {

template <typename T>
constexpr DecodeVariant shapes[] = {
    decode_variant<this_executor, DecodeShape<T, 128, 1, 16, 4, 3>>(),
    decode_variant<this_executor, DecodeShape<T, 128, 1, 16, 8, 3>>(),
    cascade_variant<this_executor, DecodeShape<T, 128, 2, 16, 4, 3>>(),
};

}  // namespace

template <>
std::span<const DecodeVariant> decode_variants<this_executor, __half, 128>() {
  return shapes<__half>;
}

template <>
std::span<const DecodeVariant> decode_variants<this_executor, __nv_bfloat16, 128>() {
  return shapes<__nv_bfloat16>;
}

}  // namespace attest
