#pragma once

// An answer in device memory, and what may be asked of it: the whole, or the worst elements of
// what a kernel gave.

#include <cstdint>

#include "core/base/error_ratio.hpp"
#include "cpu_reference/device_reference.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/reference/chunk.cuh"
#include "gpu/reference/operands.cuh"

namespace attest {
// The file is compiled twice into one program, for the GPU and for the executor.
namespace {

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

WorstOutput compare_tensor(Memory& memory, Device& device, const Operand& got, const Shape& shape,
                           const OutputArrays& answer) {
  WorstOutput worst;
  worst.elements = got.size;
  if (worst.elements == 0) return worst;
  const std::int64_t parts = ceil_of(worst.elements, part_elements) * 64;
  auto* const checks = memory.allocate<PartCheck>(parts);
  launch(compare_parts, grid_of(ceil_of(parts, 64)), dim3(64), 0, device, got.data, answer.value,
         answer.bound, worst.elements, parts, checks);
  std::int64_t at = -1;
  for (const PartCheck& part : memory.download(checks, parts)) {
    worst.vacuous += part.vacuous;
    if (part.at < 0 || (at >= 0 && part.ratio <= worst.ratio)) continue;
    worst.ratio = part.ratio;
    at = part.at;
  }
  if (at < 0) return worst;
  worst.got = static_cast<double>(memory.download(got.data + at, 1)[0]);
  worst.want = memory.download(answer.value + at, 1)[0];
  worst.bound = memory.download(answer.bound + at, 1)[0];
  for (std::size_t axis = 4; axis-- > 0;) {
    worst.index[axis] = at % shape[axis];
    at /= shape[axis];
  }
  return worst;
}

/// The worst element of every output of the problem's operation.
WorstOutputs compare(Memory& memory, Device& device, const Problem& problem,
                     const IndexedList<Operand, OutputIndex>& outputs, const AnswerArrays& arrays) {
  WorstOutputs worst;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const OutputIndex output{i};
    worst[output] = compare_tensor(memory, device, outputs[output],
                                   (*problem.operation)[output].shape(problem), arrays[output]);
  }
  return worst;
}

/// A DeviceReference of what `solve` computes from a problem's operands: AnswerArrays of (Memory&,
/// Device&, const Problem&, const InputOperands&, const Roundings&).
template <typename Solve>
DeviceReference device_reference(const Operation& operation, const Solve& solve) {
  const auto check = [solve](Device& device, const Problem& problem, const auto& inputs,
                             const Roundings& roundings, const auto& outputs) {
    Memory memory(device);
    const AnswerArrays answer =
        solve(memory, device, problem, operands(memory, device, inputs), roundings);
    return compare(memory, device, problem, operands(memory, device, outputs), answer);
  };
  return {.operation = &operation,
          .executor = this_executor,
          .covers = {},
          .answer =
              [solve](Device& device, const Problem& problem, const Inputs& inputs,
                      const Roundings& roundings) {
                check_shapes(problem, inputs);
                Memory memory(device);
                return fetch(
                    memory, problem,
                    solve(memory, device, problem, operands(memory, device, inputs), roundings));
              },
          .check =
              [check](Device& device, const Problem& problem, const Inputs& inputs,
                      const Roundings& roundings, const Outputs& outputs) {
                check_shapes(problem, inputs);
                return check(device, problem, inputs, roundings, outputs);
              },
          .check_resident = check};
}

}  // namespace
}  // namespace attest
