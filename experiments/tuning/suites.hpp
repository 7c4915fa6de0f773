#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// Problems that are tuned together.
struct Suite {
  std::string_view name;
  std::string_view summary;
  std::vector<Problem> (*problems)();
};

[[nodiscard]] std::span<const Suite> all_suites();
/// Problems of a suite. Throws InvalidInput with the names that there are.
[[nodiscard]] std::vector<Problem> problems_of_suite(std::string_view name);

}  // namespace attest
