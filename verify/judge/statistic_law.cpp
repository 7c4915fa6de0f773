#include "verify/judge/statistic_law.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/operations/forward.hpp"

namespace attest {
namespace {

/// The model has no rounding of the partial outputs that splits leave behind.
bool is_modelled(Run& run, std::string_view tensor) {
  if (tensor == "LSE") return run.kernel().gives(forward::lse);
  const PrecisionPlan plan =
      run.kernel().precision(run.problem(), run.the_case().plan).as<PrecisionPlan>();
  return plan.splits <= 1 || plan.partial_format == ElementType::fp32;
}

}  // namespace

Law statistic_law(Statistic statistic, std::string statement, std::string failure) {
  Law law;
  law.name = info_of(statistic).name;
  law.statement = std::move(statement);
  law.layer = Layer::statistics;
  law.operations = {&forward_operation};
  law.applies = [statistic](Run& run) {
    return is_modelled(run, info_of(statistic).tensor) && has_enough(statistic, run.error_models());
  };
  law.check = [statistic, failure = std::move(failure)](Run& run) {
    const StatisticInfo& info = info_of(statistic);
    const StatisticValue& found = run.statistics()[static_cast<std::size_t>(statistic)];
    const WorstElement worst{.index = found.worst,
                             .got = found.value,
                             .want = 0,
                             .bound = info.threshold,
                             .ratio = std::max(found.value, 0.0) / info.threshold};
    const std::string tensor(info.tensor);
    if (!within(info.threshold, found.value)) {
      return Check::failed_at(tensor, worst,
                              fmt::format("{}: {} is {:.3g}, a correct kernel stays below {:.3g}",
                                          failure, info.name, found.value, info.threshold));
    }
    Check check;
    check.has_element = true;
    check.tensor = tensor;
    check.worst = worst;
    return check;
  };
  return law;
}

}  // namespace attest
