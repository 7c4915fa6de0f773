#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/run/kernel.hpp"
#include "experiments/study/language/parse_study.hpp"

namespace attest {
/// One value for each axis of a grid, as the file says it.
using Combination = std::map<const Axis*, WrittenValue>;
/// All of them, the last axis fastest. One empty one for a grid without axes.
[[nodiscard]] std::vector<Combination> combinations_of(const Grid& grid);
/// Its values, those of computed axes with them.
[[nodiscard]] AxisValues values_of(const Combination& combination);

/// A problem of a study, or why the values make none.
struct ProblemPoint {
  Problem problem{};
  AxisValues axes{};
  std::string why_not{};
};
/// The problems of all grids, of one operation: axes that it has not are dropped.
[[nodiscard]] std::vector<ProblemPoint> problems_of(const std::vector<Grid>& grids,
                                                    const Operation& operation = forward_operation);

/// Plans of one kernel for one problem, picked by some of their fields.
class PlanChoice {
 public:
  /// `gpu`, a description or a name: whose tuned Plans are the default.
  PlanChoice(const KernelInfo& kernel, const Problem& problem, std::string_view gpu);

  /// A Plan with the fields that are set in `wanted` (key_splits 1: not split); the others as in
  /// the default Plan. Where the kernel does not offer that, nor takes it as a mixture of what it
  /// offers (is_offered): the offered Plan with the wanted fields that differs least from the
  /// default, or such a mixture. Otherwise a sentence.
  [[nodiscard]] std::variant<Plan, std::string> pick(const Plan& wanted) const;

  [[nodiscard]] const std::vector<Plan>& offered() const { return offered_; }
  /// Values that a field has in offered Plans, ascending; none where the kernel does not use it.
  [[nodiscard]] std::vector<std::int64_t> values_of(const PlanField& field) const;

 private:
  [[nodiscard]] std::string why_none(const Plan& wanted) const;

  const KernelInfo& kernel_;
  const Problem& problem_;
  std::vector<Plan> offered_;  ///< the nearest to the default first
  Plan default_;
};

}  // namespace attest
