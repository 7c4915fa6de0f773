#include "experiments/study/language/error_metrics.hpp"

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

}  // namespace attest
