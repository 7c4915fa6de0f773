#pragma once

#include <cstdint>
#include <functional>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/run/device.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {

/// Worst element of a tensor against its bound, found where the answer is.
struct WorstOutput {
  Shape index{};
  double got = 0, want = 0, bound = 0;
  double ratio = 0;           ///< error over bound, core/base/error_ratio.hpp
  std::int64_t elements = 0;  ///< compared
  std::int64_t vacuous = 0;   ///< of them without a finite bound; never the worst
};
struct OutputCheck {
  WorstOutput o, lse;
  std::int64_t rows = 0;  ///< rows whose every element was compared
};

/// A double reference that runs on a device: the same Answer as exact_answer, in another order of
/// summation, with its own error estimated for that order. Registered by its own file.
struct DeviceReference {
  Executor executor;
  /// May refuse windows, softcap, value_dim, lengths and padding: those are for the CPU then.
  std::function<bool(const Problem&)> covers;
  std::function<Answer(Device&, const Problem&, const Inputs&, const PrecisionPlan&)> answer;
  /// Compares every element on the device; only the worst come back.
  std::function<OutputCheck(Device&, const Problem&, const Inputs&, const PrecisionPlan&,
                            const Outputs&)>
      check;
};
struct DeviceReferenceRegistration {
  explicit DeviceReferenceRegistration(DeviceReference reference);
};
/// nullptr when this program has none for the executor.
[[nodiscard]] const DeviceReference* find_device_reference(Executor executor);

/// Visible (query, key) pairs times head_dim, over all heads: what a reference costs, times 8.
[[nodiscard]] double reference_work(const Problem& problem);

/// exact_answer on the CPU, or on a GPU where there is one and the problem is large enough to be
/// worth it (reference_work of 2^30 and more: above a second on a core). Both keep the same
/// promise.
[[nodiscard]] Answer best_answer(const Problem& problem, const Inputs& inputs,
                                 const PrecisionPlan& precision);

}  // namespace attest
