// Statistics layer: the errors of dQ, dK and dV do not point where roundings do not lead.
#include "verify/judge/gradient_statistics.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "verify/judge/law.hpp"

namespace attest {
namespace law_gradient_statistics {

std::string statement_of(const GradientStatisticInfo& info) {
  if (info.statistic == GradientStatistic::dq_along_mean_key) {
    return "on keys and values with means, dQ errs along each row's mean key no more than its "
           "roundings add up to";
  }
  return fmt::format(
      "on N(0, 1), {} is neither too long nor too short: its errors do not point along it",
      backward_operation[info.output].label);
}

Check check_deviation(Run& run, const GradientStatisticInfo& info) {
  const std::string label(backward_operation[info.output].label);
  const GradientDeviation found = deviation_of(run, info.statistic);
  if (!within(most_gradient_deviations, found.value)) {
    return Check::failed_at(label, found.worst, found.detail);
  }
  Check check;
  check.has_element = true;
  check.tensor = label;
  check.worst = found.worst;
  return check;
}

Law law_of(const GradientStatisticInfo& info) {
  Law law;
  law.name = info.name;
  law.statement = statement_of(info);
  law.layer = Layer::statistics;
  law.cost = Law::Cost::more_launches;
  law.operations = {&backward_operation};
  law.applies = [info](Run& run) { return is_modelled(run, info.statistic); };
  law.check = [info](Run& run) { return check_deviation(run, info); };
  return law;
}

const auto registrations = [] {
  std::vector<LawRegistration> all;
  for (const GradientStatisticInfo& info : all_gradient_statistics()) {
    all.emplace_back(law_of(info));
  }
  return all;
}();

}  // namespace law_gradient_statistics
}  // namespace attest
