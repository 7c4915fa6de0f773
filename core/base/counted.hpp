#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace attest {

/// The noun behind a count: `case` behind 1, else `cases`. Of nouns that take an s.
[[nodiscard]] inline std::string noun_behind(std::integral auto count, std::string_view noun) {
  return count == 1 ? std::string(noun) : fmt::format("{}s", noun);
}

/// `1 case`, `2 cases`, `0 cases`.
[[nodiscard]] inline std::string counted(std::integral auto count, std::string_view noun) {
  return fmt::format("{} {}", count, noun_behind(count, noun));
}

}  // namespace attest
