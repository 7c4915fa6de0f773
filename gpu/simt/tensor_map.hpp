#pragma once

#include <string>

#include "core/attention/boxed_tensor.hpp"

namespace attest {
namespace simt {

/// The executor's CUtensorMap, as large as the GPU's, so that parameters have one layout on both.
struct alignas(64) TensorMap {
  BoxedTensor tensor;
  char rest[128 - sizeof(BoxedTensor)];
};
static_assert(sizeof(TensorMap) == 128);

}  // namespace simt

using TensorMap = simt::TensorMap;

inline namespace on_simt {
/// Why a device lacks Hopper's instructions (gpu/runtime/tensor_map.hpp); the executor has them
/// all.
inline std::string why_not_hopper() {
  return {};
}

inline TensorMap tensor_map(const BoxedTensor& tensor) {
  return {tensor, {}};
}
}  // namespace on_simt
}  // namespace attest
