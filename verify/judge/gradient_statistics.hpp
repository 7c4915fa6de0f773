#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/operations/backward.hpp"
#include "verify/judge/compare.hpp"
#include "verify/judge/run.hpp"

namespace attest {

/// Statistics of the errors of dQ, dK and dV, along directions that the exact answer gives. The
/// roundings to 16 bits, each as good as independent of the others, have a variance there; all that
/// is fp32 stays a bound, because it may have one sign, and is taken off the error's size.
///
/// A rounding of P or dS moves a whole row of the output along one row of an input: elements of a
/// row err together, so that their mean square says nothing, and pairs are what is summed over.
enum class GradientStatistic {
  dq_gain,  ///< all errors along the gradient: is it too short or too long?
  dk_gain,
  dv_gain,
  /// Each row's error of dQ along its mean key, sum p chi k, where an error of delta goes, and rows
  /// may have either sign.
  dq_along_mean_key
};
inline constexpr std::size_t gradient_statistic_count = 4;

struct GradientStatisticInfo {
  GradientStatistic statistic;
  std::string_view name;  ///< of its law, too
  OutputIndex output;
  std::string_view family;  ///< of the inputs that it is asked on, whatever those of the case are
  double magnitude;
};
/// All statistics of gradients, in the order of GradientStatistic.
[[nodiscard]] const std::array<GradientStatisticInfo, gradient_statistic_count>&
all_gradient_statistics();

/// Standard deviations beyond which no correct kernel is met: of a normal law 3e-12 are.
inline constexpr double most_gradient_deviations = 7;

struct GradientDeviation {
  double value = 0;  ///< in standard deviations; of a sum of squares, those that are as unlikely
  WorstElement worst;
  std::string detail;  ///< what a value beyond most_gradient_deviations says
};

/// True if the model holds, which is decided without looking at an output. Of fp32 kernels nothing
/// is rounded that the bound does not know to the last bit.
[[nodiscard]] bool is_modelled(const Run& run, GradientStatistic statistic);
/// Deviation of a launch of the case on inputs of the statistic's family. 0 where a bound is
/// infinite or an output no number: that is the bound's affair.
[[nodiscard]] GradientDeviation deviation_of(Run& run, GradientStatistic statistic);
/// Deviations of all statistics, in their order, with one launch a family; nothing where the model
/// does not hold.
[[nodiscard]] std::vector<std::optional<GradientDeviation>> deviations_of(Run& run);

}  // namespace attest
