#pragma once

// An answer in device memory, and what may be asked of it: the whole, or the worst elements of
// what a kernel gave.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error_ratio.hpp"
#include "cpu_reference/device_reference.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/chunk.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

dim3 grid_of(std::int64_t x, std::int64_t y = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), 1};
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

/// OutputAnswer on the device.
struct OutputArrays {
  double *value, *bound, *own_error;
};
using AnswerArrays = IndexedList<OutputArrays, OutputIndex>;

/// One an output of the problem's operation, values undefined.
AnswerArrays allocate_answer(Memory& memory, const Problem& problem) {
  AnswerArrays arrays;
  for (std::size_t i = 0; i < problem.operation->outputs().size(); ++i) {
    const Shape shape = (*problem.operation)[OutputIndex{i}].shape(problem);
    const std::int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
    arrays[OutputIndex{i}] = {memory.allocate<double>(count), memory.allocate<double>(count),
                              memory.allocate<double>(count)};
  }
  return arrays;
}

Answer fetch(Memory& memory, const Problem& problem, const AnswerArrays& arrays) {
  Answer answer;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const OutputIndex output{i};
    const Shape shape = (*problem.operation)[output].shape(problem);
    answer[output] = {memory.download(arrays[output].value, shape),
                      memory.download(arrays[output].bound, shape),
                      memory.download(arrays[output].own_error, shape)};
  }
  return answer;
}

/// Worst element of a part of a tensor.
struct PartCheck {
  double ratio;
  std::int64_t at, vacuous;
};
constexpr std::int64_t part_elements = 4096;

/// A thread a part of `got`: with thousands of parts the threads are enough.
__global__ void compare_parts(const float* got, const double* want, const double* bound,
                              std::int64_t elements, std::int64_t parts, PartCheck* checks) {
  const std::int64_t part = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (part >= parts) return;
  PartCheck worst{0, -1, 0};
  // Neighbouring threads read neighbouring elements.
  for (std::int64_t e = part; e < elements; e += parts) {
    if (bound[e] == HUGE_VAL) {
      ++worst.vacuous;
      continue;
    }
    const double ratio = error_over_bound(static_cast<double>(got[e]), want[e], bound[e]);
    if (worst.at < 0 || !(ratio <= worst.ratio)) {
      worst.ratio = ratio;
      worst.at = e;
    }
  }
  checks[part] = worst;
}

WorstOutput compare_tensor(Memory& memory, Device& device, const Tensor<float>& got,
                           const OutputArrays& answer) {
  WorstOutput worst;
  worst.elements = got.size();
  if (worst.elements == 0) return worst;
  const std::int64_t parts = ceil_of(worst.elements, part_elements) * 64;
  auto* const checks = memory.allocate<PartCheck>(parts);
  launch(compare_parts, grid_of(ceil_of(parts, 64)), dim3(64), 0, device,
         memory.upload(got.values()), answer.value, answer.bound, worst.elements, parts, checks);
  std::int64_t at = -1;
  for (const PartCheck& part : memory.download(checks, parts)) {
    worst.vacuous += part.vacuous;
    if (part.at < 0 || (at >= 0 && part.ratio <= worst.ratio)) continue;
    worst.ratio = part.ratio;
    at = part.at;
  }
  if (at < 0) return worst;
  worst.got = static_cast<double>(got.values()[static_cast<std::size_t>(at)]);
  worst.want = memory.download(answer.value + at, 1)[0];
  worst.bound = memory.download(answer.bound + at, 1)[0];
  for (std::size_t axis = 4; axis-- > 0;) {
    worst.index[axis] = at % got.shape()[axis];
    at /= got.shape()[axis];
  }
  return worst;
}

/// The worst element of every output.
WorstOutputs compare(Memory& memory, Device& device, const Outputs& outputs,
                     const AnswerArrays& arrays) {
  WorstOutputs worst;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const OutputIndex output{i};
    worst[output] = compare_tensor(memory, device, outputs[output], arrays[output]);
  }
  return worst;
}

}  // namespace
}  // namespace attest
