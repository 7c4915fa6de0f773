#include "verify/campaign/regressions.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "core/attention/layout_needs.hpp"
#include "core/inputs/input_family.hpp"
#include "verify/campaign/counterexample.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

struct EmbeddedFile {
  std::string_view name, text;
};

// Written by verify/CMakeLists.txt: one entry a file of verify/campaign/regressions.
constexpr std::array embedded_files{
#include "regressions.inc"
};

std::int64_t distance(const Plan& a, const Plan& b) {
  std::int64_t sum = 0;
  for (const PlanField& field : plan_fields()) sum += std::abs(a.*field.member - b.*field.member);
  return sum;
}

}  // namespace

const std::vector<Regression>& all_regressions() {
  static const std::vector<Regression> corpus = [] {
    std::vector<Regression> read;
    for (const EmbeddedFile& file : embedded_files) {
      read.push_back({std::string(file.name),
                      counterexample_from_json(file.text, std::string(file.name)).the_case});
    }
    return read;
  }();
  return corpus;
}

std::optional<Case> fitted_case(const Case& c, const KernelInfo& kernel) {
  const std::vector<Plan> plans = kernel.plans(c.problem);
  const bool has_family = std::ranges::find(all_input_families(), c.inputs.family,
                                            &InputFamily::name) != all_input_families().end();
  if (plans.empty() || !has_family) return std::nullopt;
  Case fitted_to = c;
  fitted_to.kernel = kernel.name;
  fitted_to.plan = *std::ranges::min_element(
      plans, {}, [&](const Plan& plan) { return distance(plan, c.plan); });
  fitted_to.layouts = fitted(kernel.layout_needs, c.problem, c.layouts);
  if (!can_run(kernel, fitted_to)) return std::nullopt;
  return fitted_to;
}

}  // namespace attest
