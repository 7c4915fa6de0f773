#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Something about a case without which some bug stays invisible.
struct Feature {
  std::string name;
  std::vector<int> zoo;  ///< rows of the bug zoo (verify/README.md) that it exposes
  std::function<bool(const KernelInfo&, const Case&)> holds;
  /// A sentence about what it takes to reach the feature; empty: every default run reaches it.
  std::string needs = {};
  /// The operations of whose cases, and of those that extend them, it is asked; empty: all, as it
  /// only looks at layouts.
  std::vector<const Operation*> operations = {&forward_operation};
};

/// All features, in the order in which they are printed.
[[nodiscard]] const std::vector<Feature>& all_features();

/// Names of the features that the case has: a pure function of its arguments.
[[nodiscard]] std::vector<std::string> features_of(const KernelInfo& kernel, const Case& c);

/// Number of cases that had each feature.
using Coverage = std::map<std::string, std::int64_t>;
/// Features that no case had although every default run should, in the order of all_features().
[[nodiscard]] std::vector<std::string> unreached(const Coverage& coverage);
/// A line: the number of features reached, and those that were rare.
[[nodiscard]] std::string to_string(const Coverage& coverage);
/// A line for each that was missed; one for all of those that take the same to be reached.
[[nodiscard]] std::string unreached_text(const Coverage& coverage);

}  // namespace attest
