#pragma once

#include <optional>
#include <string>

#include "core/run/kernel.hpp"
#include "gpu/model/device_table.hpp"

namespace attest {

/// A Plan, and where it comes from.
struct ChosenPlan {
  Plan plan;
  std::string origin{};  ///< empty: it was given
};

/// `given`, with what it leaves open taken from the Plan of the kernel that is most like it. An
/// empty one means the Plan that was tuned for the GPU, else the kernel's first; where no SM of the
/// GPU holds a block of it, the first that fits. Throws
/// InvalidInput for a field that no Plan of the kernel sets, and for a Plan that the kernel cannot
/// run.
[[nodiscard]] ChosenPlan plan_to_explain(const KernelInfo& kernel, const Problem& problem,
                                         const GpuModel& gpu, const Plan& given,
                                         const Paging& paging = {});

/// Problem that is explained where nobody names one, if the kernel takes it (default_problem).
inline constexpr const char* usual_problem = "b8 h12 n4096 d64";

/// The problem that the text says, without one the usual; where the text names no element type,
/// one that the kernel has. Throws InvalidInput for a text that is no problem or asks for what the
/// kernel does not compute.
[[nodiscard]] Problem problem_to_explain(const KernelInfo& kernel,
                                         const std::optional<std::string>& text);

}  // namespace attest
