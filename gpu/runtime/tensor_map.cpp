#include "gpu/runtime/tensor_map.hpp"

#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "core/base/error.hpp"
#include "gpu/runtime/device_info.hpp"
#include "gpu/runtime/driver.hpp"

namespace attest {
namespace {

/// cuTensorMapEncodeTiled of the driver.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto encode =
      driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled", 12000);
  return encode;
}

CUtensorMapDataType data_type(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ElementType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case ElementType::e4m3:
    case ElementType::e5m2:
    case ElementType::int8:
    case ElementType::e2m1:  // by units
    case ElementType::int4:
    case ElementType::ue8m0:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

}  // namespace

CUtensorMap tensor_map(const BoxedTensor& t) {
  constexpr std::int64_t swizzled_bytes = 128;
  const auto bytes = static_cast<std::int64_t>(format_of(t.type).size_bytes);
  const std::array<std::int64_t, 4> sizes{t.columns, t.rows, t.heads, t.batch};
  const std::array<std::int64_t, 3> steps{t.strides.row, t.strides.head, t.strides.batch};
  std::array<cuuint64_t, 4> dims{};
  std::array<cuuint64_t, 3> strides{};
  for (std::size_t i = 0; i < 4; ++i) dims[i] = static_cast<cuuint64_t>(sizes[i]);
  for (std::size_t i = 0; i < 3; ++i) {
    // Nothing is multiplied by the stride of a lone element, which may be anything.
    strides[i] = static_cast<cuuint64_t>(sizes[i + 1] == 1 ? 16 : steps[i] * bytes);
  }
  const std::array<cuuint32_t, 4> box{static_cast<cuuint32_t>(swizzled_bytes / bytes),
                                      static_cast<cuuint32_t>(t.box_rows), 1, 1};
  const std::array<cuuint32_t, 4> every{1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result =
      encoder()(&map, data_type(t.type), 4, const_cast<void*>(t.first), dims.data(), strides.data(),
                box.data(), every.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw MachineError(
        fmt::format("the CUDA driver refuses a tensor map (error {}) of {} x {} x {} x {} elements "
                    "with strides {}, "
                    "{}, {} at {}; allowed: addresses and strides that are multiples of 16 bytes, "
                    "strides below 2^40",
                    static_cast<int>(result), t.batch, t.heads, t.rows, t.columns, t.strides.batch,
                    t.strides.head, t.strides.row, t.first));
  }
  return map;
}

std::string why_not_hopper() {
  // Asked for every Plan of every case; the driver takes long to describe a device.
  static const std::string reason = [] {
    std::string no_gpu = why_no_gpu();
    if (!no_gpu.empty()) return no_gpu;
    const DeviceInfo info = device_info(0);
    if (info.compute_major == 9 && info.compute_minor == 0) return std::string{};
    return fmt::format("it needs wgmma and TMA of sm_90, and {} is sm_{}{}", info.name,
                       info.compute_major, info.compute_minor);
  }();
  return reason;
}

}  // namespace attest
