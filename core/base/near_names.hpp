#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// The names that are few typing errors away from `got`, or that it is a part or a misspelt
/// beginning of, nearest first, at most three. Nothing that differs in more than a third.
[[nodiscard]] std::vector<std::string> near_names(std::string_view got,
                                                  std::span<const std::string> names);

/// End of a complaint about an unknown name: `near: a, b`, otherwise `allowed: ` and all names, of
/// which there is at least one.
[[nodiscard]] std::string near_or_all(std::string_view got, std::span<const std::string> names);

}  // namespace attest
