#include "gpu/kernels/decode_mma/code_products.cuh"
#include "gpu/kernels/decode_mma/variant.cuh"

namespace attest {
namespace {

template <typename T, Code code>
constexpr auto shapes =
    joined(decode_listed<this_executor, SimtTypes::both, CodeShape<T, code, 64, 1, 32, 4, 6>>(),
           decode_listed<this_executor, code == Code::e4m3 ? SimtTypes::fp16 : SimtTypes::none,
                         CodeShape<T, code, 64, 1, 32, 8, 6>>(),
           decode_listed<this_executor, code == Code::int8 ? SimtTypes::bf16 : SimtTypes::none,
                         CodeShape<T, code, 64, 2, 32, 4, 6>>());

}  // namespace

template <>
std::span<const CodesVariant> codes_variants<this_executor, __half, Code::e4m3, 64>() {
  return shapes<__half, Code::e4m3>;
}

template <>
std::span<const CodesVariant> codes_variants<this_executor, __half, Code::int8, 64>() {
  return shapes<__half, Code::int8>;
}

template <>
std::span<const CodesVariant> codes_variants<this_executor, __nv_bfloat16, Code::e4m3, 64>() {
  return shapes<__nv_bfloat16, Code::e4m3>;
}

template <>
std::span<const CodesVariant> codes_variants<this_executor, __nv_bfloat16, Code::int8, 64>() {
  return shapes<__nv_bfloat16, Code::int8>;
}

}  // namespace attest
