#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/operation.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/roundings.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/run/device.hpp"
#include "cpu_reference/answer.hpp"

namespace attest {

/// Worst element of a tensor against its bound, found where the answer is.
struct WorstOutput {
  Shape index{};
  double got = 0, want = 0, bound = 0;
  double ratio = 0;           ///< error over bound, core/base/error_ratio.hpp
  std::int64_t elements = 0;  ///< compared
  std::int64_t vacuous = 0;   ///< of them without a finite bound; never the worst
};
/// One an output of the operation.
using WorstOutputs = IndexedList<WorstOutput, OutputIndex>;

/// A tensor in a device's memory, whatever its strides, pages or packing are.
struct DeviceTensor {
  Shape shape{};                         ///< as the operation shapes it
  ElementType type = ElementType::fp32;  ///< fp32, fp16 or bf16
  const std::byte* data = nullptr;
  /// Start of row (b, h, n), in elements from `data`, one a row in that order; absent_row: nowhere,
  /// its elements are `absent`. Empty: rows follow one another without gaps.
  std::vector<std::int64_t> rows{};
  float absent = 0;

  static constexpr std::int64_t absent_row = -1;
};
using DeviceInputs = IndexedList<DeviceTensor, InputIndex>;
using DeviceOutputs = IndexedList<DeviceTensor, OutputIndex>;

/// A double reference of one operation that runs on a device: the same Answer as Reference::exact,
/// in another order of summation, with its own error estimated for that order. Registered by its
/// own file.
struct DeviceReference {
  const Operation* operation = nullptr;
  Executor executor = Executor::gpu;
  /// The reference_work from which best_answer() prefers a GPU: above a second on a core.
  double worth_a_gpu = 0;
  /// True if it computes this problem with these roundings: it may refuse what only the CPU does.
  std::function<bool(const Problem&, const Roundings&)> covers;
  std::function<Answer(Device&, const Problem&, const Inputs&, const Roundings&)> answer;
  /// Compares every element on the device; only the worst come back.
  std::function<WorstOutputs(Device&, const Problem&, const Inputs&, const Roundings&,
                             const Outputs&)>
      check;
  /// Compares every element of outputs that lie on the device already, with inputs that do, too:
  /// nothing of them travels.
  std::function<WorstOutputs(Device&, const Problem&, const DeviceInputs&, const Roundings&,
                             const DeviceOutputs&)>
      check_resident;
};
/// Adds a reference to those of the program, from the file that has it. One an operation and
/// executor.
struct DeviceReferenceRegistration {
  explicit DeviceReferenceRegistration(DeviceReference reference);
};
/// nullptr when this program has none for the operation and the executor.
[[nodiscard]] const DeviceReference* find_device_reference(const Operation& operation,
                                                           Executor executor);

/// Throws InvalidInput if an input does not have the shape that the problem's operation gives it.
/// Device references ask it first.
void check_shapes(const Problem& problem, const Inputs& inputs);

/// Visible (query, key) pairs times the mean of head_dim and output_dim(), over all heads.
[[nodiscard]] double reference_work(const Problem& problem);

/// Reference::exact on the CPU, or the answer of a GPU where there is one and the problem is large
/// enough to be worth it. Both keep the same promise.
[[nodiscard]] Answer best_answer(const Problem& problem, const Inputs& inputs,
                                 const Roundings& roundings);

}  // namespace attest
