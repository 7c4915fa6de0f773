#include "experiments/study/language/error_metrics.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "core/records/metric.hpp"

namespace attest {
namespace {

ErrorMetric named_after(const std::string& of_profile) {
  std::string name = of_profile;
  for (const std::string_view word : {"error_", "_error"}) {
    if (const auto at = name.find(word); at != std::string::npos) name.erase(at, word.size());
  }
  return {.name = "error." + name, .of_profile = of_profile};
}

}  // namespace

const std::vector<ErrorMetric>& error_metrics() {
  static const std::vector<ErrorMetric> metrics = [] {
    std::vector<ErrorMetric> found;
    for (const Metric& m : all_metrics()) found.push_back(named_after(m.name));
    found.push_back(named_after("error_over_bound_max"));
    return found;
  }();
  return metrics;
}

std::string error_prefix(const Operation& operation, OutputIndex output) {
  return output.number == 0 ? "" : fmt::format("{}_", operation[output].name);
}

std::vector<std::string> error_names() {
  std::set<std::string> prefixes;
  for (const Operation* operation : all_operations()) {
    for (std::size_t i = 0; i < operation->outputs().size(); ++i) {
      // Those of score modifications: problems that are timed have none.
      if (is_optional(*operation, OutputIndex{i})) continue;
      prefixes.insert(error_prefix(*operation, OutputIndex{i}));
    }
  }
  std::vector<std::string> names;
  for (const std::string& prefix : prefixes) {
    for (const ErrorMetric& metric : error_metrics()) {
      names.push_back(metric.with_prefix(prefix));
    }
  }
  return names;
}

}  // namespace attest
