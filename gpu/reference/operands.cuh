#pragma once

// What a reference reads: a problem's tensors on the device, in fp32 without gaps, wherever they
// came from.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "cpu_reference/device_reference.hpp"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/chunk.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

dim3 grid_of(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
}

/// Buffers of one computation; released with it.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (std::byte* buffer : buffers_) device_.release(buffer);
  }
  template <typename T>
  T* allocate(std::int64_t count) {
    buffers_.push_back(device_.allocate(static_cast<std::size_t>(count) * sizeof(T)));
    return reinterpret_cast<T*>(buffers_.back());
  }
  template <typename T>
  const T* upload(std::span<const T> values) {
    buffers_.push_back(device_.upload_values(std::as_bytes(values)));
    return reinterpret_cast<const T*>(buffers_.back());
  }
  template <typename T>
  std::vector<T> download(const T* from, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_.download(reinterpret_cast<const std::byte*>(from),
                     std::as_writable_bytes(std::span(values)));
    return values;
  }
  Tensor<double> download(const double* from, const Shape& shape) {
    Tensor<double> tensor(shape);
    device_.download(reinterpret_cast<const std::byte*>(from),
                     std::as_writable_bytes(tensor.values()));
    return tensor;
  }

 private:
  Device& device_;
  std::vector<std::byte*> buffers_;
};

/// A tensor in fp32 without gaps.
struct Operand {
  const float* data = nullptr;
  std::int64_t size = 0;
};
using InputOperands = IndexedList<Operand, InputIndex>;

constexpr int operand_threads = 256;

/// Copies a tensor, widened to fp32, to where its rows follow one another. rows: where each begins
/// in `from`, or absent_row; null: they follow one another there, too.
template <typename T>
__global__ void gather_rows(const T* from, const std::int64_t* rows, std::int64_t columns,
                            float absent, float* to, std::int64_t elements) {
  const std::int64_t e = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (e >= elements) return;
  const std::int64_t row = e / columns;
  const std::int64_t at = rows == nullptr ? row * columns : rows[row];
  to[e] = at == DeviceTensor::absent_row ? absent : to_float(from[at + e % columns]);
}

Operand operand(Memory& memory, Device& /*device*/, const Tensor<float>& tensor) {
  return {memory.upload(tensor.values()), tensor.size()};
}

Operand operand(Memory& memory, Device& device, const DeviceTensor& tensor) {
  const Shape& shape = tensor.shape;
  const std::int64_t size = shape[0] * shape[1] * shape[2] * shape[3];
  if (size == 0 || tensor.data == nullptr) return {};
  const bool is_ready = tensor.type == ElementType::fp32 && tensor.rows.empty();
  if (is_ready) return {reinterpret_cast<const float*>(tensor.data), size};
  const std::int64_t* const rows =
      tensor.rows.empty() ? nullptr : memory.upload(std::span<const std::int64_t>(tensor.rows));
  auto* const to = memory.allocate<float>(size);
  with_cuda_type(tensor.type, [&]<typename T>(std::type_identity<T>) {
    launch(gather_rows<T>, grid_of(ceil_of(size, operand_threads)), dim3(operand_threads), 0,
           device, reinterpret_cast<const T*>(tensor.data), rows, shape[3], tensor.absent, to,
           size);
  });
  return {to, size};
}

template <typename T, typename Index>
IndexedList<Operand, Index> operands(Memory& memory, Device& device,
                                     const IndexedList<T, Index>& tensors) {
  IndexedList<Operand, Index> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    all[Index{i}] = operand(memory, device, tensors[Index{i}]);
  }
  return all;
}

/// Summary of a tensor's elements.
struct Extent {
  double largest = 0;  ///< finite |element|
  bool is_finite = true;
};

constexpr std::int64_t most_extents = 1 << 14;

/// A thread a part.
__global__ void measure_parts(const float* values, std::int64_t elements, std::int64_t parts,
                              Extent* extents) {
  const std::int64_t part = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (part >= parts) return;
  Extent extent{0, true};
  for (std::int64_t e = part; e < elements; e += parts) {
    const double size = fabs(static_cast<double>(values[e]));
    if (!(size < HUGE_VAL)) {
      extent.is_finite = false;
    } else if (size > extent.largest) {
      extent.largest = size;
    }
  }
  extents[part] = extent;
}

Extent extent_of(Memory& memory, Device& device, const Operand& tensor) {
  Extent extent;
  if (tensor.size == 0) return extent;
  const std::int64_t parts = std::min(tensor.size, most_extents);
  auto* const extents = memory.allocate<Extent>(parts);
  launch(measure_parts, grid_of(ceil_of(parts, 64)), dim3(64), 0, device, tensor.data, tensor.size,
         parts, extents);
  for (const Extent& part : memory.download(extents, parts)) {
    extent.largest = std::max(extent.largest, part.largest);
    extent.is_finite = extent.is_finite && part.is_finite;
  }
  return extent;
}

}  // namespace
}  // namespace attest
