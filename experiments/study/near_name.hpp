#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// The names that are few typing errors away from `got`, nearest first, at most three.
[[nodiscard]] std::vector<std::string> near_names(std::string_view got,
                                                  const std::vector<std::string>& names);

/// What to say after `X is unknown`: `near: a, b`, otherwise `allowed: ` and all names, of which
/// there is at least one.
[[nodiscard]] std::string near_or_all(std::string_view got, const std::vector<std::string>& names);

}  // namespace attest
