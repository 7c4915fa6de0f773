#pragma once

#include <string>
#include <string_view>

namespace attest {

/// Text that says how something ended, for stdout: green, red or yellow on a terminal, plain in a
/// pipe or a file and where NO_COLOR is set (no-color.org).
[[nodiscard]] std::string as_good(std::string_view text);
[[nodiscard]] std::string as_bad(std::string_view text);
[[nodiscard]] std::string as_open(std::string_view text);

}  // namespace attest
