#include "experiments/timing/timed_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "experiments/timing/sampled_rows.hpp"

namespace attest {
namespace {

// ResidentProblem's values: 0 for verification, 1 and 2 in turn for rounds, the last for its check.
constexpr std::size_t last_draw = ResidentProblem::draws - 1;

}  // namespace

int TimedProblem::launches(const KernelInfo& kernel, const Plan& plan) {
  const auto [known, is_new] = launches_.try_emplace({&kernel, to_string(plan)}, 1);
  if (is_new) {
    (void)time_ms(kernel, plan, 1);
    const double once = std::max(time_ms(kernel, plan, 1), 1e-3);
    // A flush takes longer than a short launch, and so does recording one.
    const double most = options_.is_cold ? 50 : options_.in_graph ? 1000 : 1e4;
    known->second = static_cast<int>(std::clamp(std::ceil(options_.shortest_ms / once), 1.0, most));
  }
  return known->second;
}

double TimedProblem::time_ms(const KernelInfo& kernel, const Plan& plan, int launches) {
  return options_.is_cold ? resident_.cold_time_ms(kernel, plan, launches)
                          : resident_.time_ms(kernel, plan, {launches, options_.in_graph});
}

void TimedProblem::change_values() {
  draw_ = draw_ == 1 ? 2 : 1;
  resident_.put_values(draw_);
}

std::optional<std::string> TimedProblem::why_timed_answers_wrong(const KernelInfo& kernel,
                                                                 const Plan& plan) {
  constexpr std::int64_t rows = 8;
  resident_.put_values(last_draw);
  resident_.poison_outputs();
  std::optional<std::string> why;
  try {
    (void)time_ms(kernel, plan);
    why = compares_every_row(resident_, kernel, plan)
              ? why_any_row_wrong(resident_, kernel, plan)
              : sample_rows(resident_, kernel, plan, rows).why_wrong();
  } catch (const KernelError& error) {
    why = error.what();
  }
  if (!why) return why;
  return fmt::format("its answers are wrong when it is timed on other values: {}", *why);
}

}  // namespace attest
