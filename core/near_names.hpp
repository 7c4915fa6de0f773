#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Those of `names` that may be meant by a misspelt `name`, the nearest first, at most `most`: by
/// the number of characters to change, insert or remove, at most a third of the name. Nothing that
/// far off is offered. Ties keep the order of `names`.
[[nodiscard]] std::vector<std::string> near_names(std::string_view name,
                                                  std::span<const std::string> names,
                                                  std::size_t most = 3);

/// `; did you mean 'dram' or 'l2'?`, or nothing: the end of a message about an unknown name.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> names);

}  // namespace attest
