// The laws of the statistics layer: each statistic of a case's errors stays below its threshold.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/operations/forward.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/statistics.hpp"

namespace attest {
namespace law_error_statistics {

struct Row {
  Statistic statistic;
  const char* statement;
  const char* failure;
};
constexpr Row rows[] = {
    {Statistic::o_rms, "O errs no more, in the mean square, than its roundings add up to",
     "O errs more than its roundings explain"},
    {Statistic::o_row_rms,
     "no row of O errs by more, in the mean square, than its roundings add up to",
     "a row of O errs more than its roundings explain"},
    {Statistic::o_largest,
     "no element of O errs by many times what its roundings usually add up to",
     "an element of O errs far more than its roundings explain"},
    {Statistic::o_bias, "the errors of O have no preferred sign", "the errors of O have one sign"},
    {Statistic::o_gain, "O is neither too long nor too short: its errors do not point along O",
     "O is too long or too short throughout: truncated weights or a wrong normaliser"},
    {Statistic::o_row_gain, "no row of O is longer or shorter than its roundings explain",
     "rows of O are too long or too short by turns: a coarse normaliser"},
    {Statistic::o_temperature,
     "the errors of O do not point where a slightly wrong scale would move it",
     "O is that of a slightly different scale"},
    {Statistic::lse_rms, "LSE errs no more, in the mean square, than its roundings add up to",
     "LSE errs more than its roundings explain"},
    {Statistic::lse_largest, "no LSE errs by many times what its roundings usually add up to",
     "an LSE errs far more than its roundings explain"},
    {Statistic::lse_bias, "the errors of LSE have no preferred sign",
     "the errors of LSE have one sign"},
};

bool is_judged(Run& run, std::string_view tensor) {
  if (tensor == "LSE") return run.kernel().gives(forward::lse);
  const Case& c = run.the_case();
  return is_modelled(run.kernel().precision(c.problem, c.plan).as<PrecisionPlan>(), c.problem,
                     c.plan);
}

Law statistic_law(const Row& row) {
  const Statistic statistic = row.statistic;
  Law law;
  law.name = info_of(statistic).name;
  law.statement = row.statement;
  law.layer = Layer::statistics;
  law.operations = {&forward_operation};
  law.needs_own_values = info_of(statistic).tensor == "O";
  law.applies = [statistic](Run& run) {
    return is_judged(run, info_of(statistic).tensor) && has_enough(statistic, run.error_models());
  };
  law.check = [statistic, failure = row.failure](Run& run) {
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

const auto registrations = [] {
  std::vector<LawRegistration> all;
  for (const Row& row : rows) all.emplace_back(statistic_law(row));
  return all;
}();

}  // namespace law_error_statistics
}  // namespace attest
