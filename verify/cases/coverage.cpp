#include "verify/cases/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/attention/operation.hpp"

namespace attest {

std::vector<std::string> features_of(const KernelInfo& kernel, const Case& c) {
  std::vector<std::string> names;
  const auto is_asked = [&](const Feature& feature) {
    const auto is_named = [&](const Operation* operation) {
      return std::ranges::find(feature.operations, operation) != feature.operations.end();
    };
    return feature.operations.empty() || is_named(c.problem.operation) ||
           (c.problem.operation->extends != nullptr && is_named(c.problem.operation->extends));
  };
  for (const Feature& feature : all_features()) {
    if (is_asked(feature) && feature.holds(kernel, c)) names.push_back(feature.name);
  }
  return names;
}

std::vector<std::string> unreached(const Coverage& coverage) {
  std::vector<std::string> missed;
  for (const Feature& feature : all_features()) {
    const auto found = coverage.find(feature.name);
    const bool is_reached = found != coverage.end() && found->second > 0;
    if (!is_reached && feature.needs.empty()) missed.push_back(feature.name);
  }
  return missed;
}

std::string to_string(const Coverage& coverage) {
  std::vector<std::pair<std::int64_t, std::string>> counts;
  for (const Feature& feature : all_features()) {
    const auto found = coverage.find(feature.name);
    if (found != coverage.end() && found->second > 0) {
      counts.emplace_back(found->second, feature.name);
    }
  }
  std::ranges::sort(counts);
  std::string text =
      fmt::format("coverage: {} of {} features reached", counts.size(), all_features().size());
  std::string separator = "; rarest: ";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, counts.size()); ++i) {
    text += fmt::format("{}{} ({})", separator, counts[i].second, counts[i].first);
    separator = ", ";
  }
  return text + '\n';
}

std::string unreached_text(const Coverage& coverage) {
  std::vector<std::pair<std::string, std::string>> elsewhere;  // what it takes, features
  for (const Feature& feature : all_features()) {
    const auto found = coverage.find(feature.name);
    if (feature.needs.empty() || (found != coverage.end() && found->second > 0)) continue;
    if (elsewhere.empty() || elsewhere.back().first != feature.needs) {
      elsewhere.emplace_back(feature.needs, feature.name);
    } else {
      elsewhere.back().second += ", " + feature.name;
    }
  }
  std::string text;
  for (const auto& [needs, names] : elsewhere) {
    text += fmt::format("  not reached, needs {}: {}\n", needs, names);
  }
  for (const std::string& name : unreached(coverage)) {
    text += fmt::format("  not reached: {}\n", name);
  }
  return text;
}

}  // namespace attest
