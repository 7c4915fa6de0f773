#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "core/base/error.hpp"
#include "core/records/case.hpp"
#include "core/run/device.hpp"
#include "core/run/kernel.hpp"
#include "core/run/session.hpp"
#include "cpu_reference/forward/error_model.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "verify/judge/phase.hpp"
#include "verify/judge/statistics.hpp"

namespace attest {

/// One launch of a kernel and all that was seen of it.
struct Launch {
  Outputs outputs;
  MemoryReport memory;
  std::vector<Finding> findings;
  std::string changed_mode;  ///< how it left the floating-point mode; empty: as it was
};

/// A kernel threw, or its launch failed. What its device is worth afterwards is not known.
class KernelFault : public MachineError {
 public:
  using MachineError::MachineError;
};

/// A launch cannot be recorded: it waits for the device, allocates memory, or uses another stream.
class CannotBeRecorded : public MachineError {
 public:
  using MachineError::MachineError;
};

/// A call of the kernel.
struct Call {
  const Case& the_case;
  const Inputs& inputs;
};

/// A case being verified. Inputs, the base launch, the exact answer and the statistics are made on
/// first use and kept, so that every law shares them.
class Run {
 public:
  /// All arguments outlive the run. `clock` may be null.
  Run(const KernelInfo& kernel, const Case& c, Device& device, PhaseClock* clock = nullptr)
      : case_(c),
        device_(device),
        clock_(clock != nullptr ? *clock : own_clock_),
        kernel_(watched_kernel(kernel, clock_)) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// The kernel; what it is asked is seen by the clock.
  [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
  [[nodiscard]] const Case& the_case() const { return case_; }
  [[nodiscard]] const Problem& problem() const { return case_.problem; }
  [[nodiscard]] PhaseClock& clock() { return clock_; }

  [[nodiscard]] const Inputs& inputs();
  /// The case as it is, launched once.
  [[nodiscard]] const Launch& base();
  /// Exact O and LSE of the case with the bounds of this kernel's PrecisionPlan.
  [[nodiscard]] const Answer& answer();
  /// Models of the errors of the rows of the case that the model claims anything about.
  [[nodiscard]] const std::vector<RowErrorModel>& error_models();
  /// Statistics of the errors of the base launch.
  [[nodiscard]] const StatisticValues& statistics();

  /// A launch of the same kernel on a variation: other inputs, plan, layouts or schedule. Throws
  /// KernelFault with the error of a launch that failed.
  [[nodiscard]] Launch launch(const Case& variation, const Inputs& inputs,
                              const SessionOptions& options = {});
  /// Three launches of one session on the case, of which the second finds shorter entries
  /// (shorter_length) in the same arrays.
  struct Relaunches {
    Outputs first, shorter, again;
  };
  [[nodiscard]] Relaunches launch_with_other_lengths();
  /// Launches, one after the other, of which each finds its buffers where those of the one before
  /// lay, as far as they are as large (KeptMemory). With `keeps_workspace` it finds there what that
  /// one left.
  [[nodiscard]] std::vector<Outputs> launch_in_turn(const std::vector<Call>& calls,
                                                    bool keeps_workspace = false);
  /// True if launches can be recorded on the kernel's device.
  [[nodiscard]] bool records() const { return device_.records() && !kernel_.timed_launch; }
  /// The first call is launched and then recorded; `second` is a replay of that record, which finds
  /// its own inputs and arrays where those of the first lay. Nothing where they do not fit. Throws
  /// CannotBeRecorded.
  [[nodiscard]] std::optional<Outputs> replay(const Call& first, const Call& second);
  [[nodiscard]] Answer answer_to(const Problem& problem, const Plan& plan, const Inputs& inputs);

 private:
  /// The kernel for a session in other memory of its device.
  [[nodiscard]] KernelInfo on_its_device() const;

  const Case& case_;
  Device& device_;
  PhaseClock own_clock_;
  PhaseClock& clock_;
  const KernelInfo kernel_;
  std::optional<Inputs> inputs_;
  std::optional<Launch> base_;
  std::optional<Answer> answer_;
  std::optional<std::vector<RowErrorModel>> error_models_;
  std::optional<StatisticValues> statistics_;
};

}  // namespace attest
