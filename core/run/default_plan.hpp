#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/kernel.hpp"
#include "core/run/tuning_table.hpp"

namespace attest {

/// The Plan that is taken where none is given, and where it is from.
struct DefaultPlan {
  enum class Origin {
    tuned,   ///< won a race in the problem's own buckets
    nearby,  ///< won one at other lengths or another number of heads
    rule,    ///< the kernel computes it (KernelInfo::has_plan_rule)
    first    ///< no race says anything: the first that the kernel offers
  };
  Plan plan;
  Origin origin = Origin::first;
  std::optional<TunedPlan> row{};  ///< that it is from
  int octaves = 0;                 ///< between the row's key and the problem's
  /// Rows for the problem that were passed over, because the kernel does not offer their Plan for
  /// it.
  int stale_rows = 0;
};

/// True if the kernel offers the Plan for the problem, or the Plan is a mixture of offered ones. A
/// mixture takes every field from one of them, and the kernel's `unsupported` has nothing against
/// it.
[[nodiscard]] bool is_offered(const KernelInfo& kernel, const Problem& problem,
                              const std::vector<Plan>& offered, const Plan& plan);

/// The Plan where none was given. A kernel that has a rule follows it. For others it comes from the
/// table of tuned Plans: among the rows of this kernel, GPU, element type, head dim, mask and
/// group, whose Plan the kernel offers for the problem, the nearest in lengths and heads; of
/// several the first in the table's order. Otherwise it is the kernel's first Plan; nothing when it
/// offers none.
[[nodiscard]] std::optional<DefaultPlan> default_plan(
    const KernelInfo& kernel, const Problem& problem, std::string_view gpu,
    const TuningTable& table = embedded_tuning_table());

/// Half a line: `tuned on NVIDIA H200 for b4 h16/16 q4096 k4096 d128 none bf16`.
[[nodiscard]] std::string to_string(const DefaultPlan& choice);

}  // namespace attest
