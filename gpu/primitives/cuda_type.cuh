#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <type_traits>

#include "core/attention/element_type.hpp"

namespace attest {

/// Value of x in fp32, exact.
inline __device__ float to_float(float x) {
  return x;
}
inline __device__ float to_float(__half x) {
  return __half2float(x);
}
inline __device__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

/// Nearest number of type T, ties to even.
template <typename T>
__device__ T from_float(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

/// with_cuda_type: visit(std::type_identity<T>) with CUDA's type T of a format.
template <typename Visit>
auto with_cuda_type(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::fp32:
      return visit(std::type_identity<float>{});
    case ElementType::fp16:
      return visit(std::type_identity<__half>{});
    case ElementType::bf16:
      return visit(std::type_identity<__nv_bfloat16>{});
    default:
      break;
  }
  no_version_for(type);
}

/// with_sixteen_bits: visits likewise, for kernels of 16-bit formats alone. They are asked for the
/// Plans of a Problem before anybody asks whether they take its format: those of fp32 are bf16's.
template <typename Visit>
auto with_sixteen_bits(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::fp16:
      return visit(std::type_identity<__half>{});
    case ElementType::bf16:
    case ElementType::fp32:
      return visit(std::type_identity<__nv_bfloat16>{});
    default:
      break;
  }
  no_version_for(type);
}

}  // namespace attest
