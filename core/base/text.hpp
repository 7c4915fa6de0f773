#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace attest {

/// A name from a file or a user, fit for a one-line message: control bytes become `?`, and what is
/// longer than `limit` bytes is cut.
[[nodiscard]] std::string printable(std::string_view name, std::size_t limit = 60);

/// Appends formatted text, as fmt::print writes it to stdout.
template <typename... Values>
void append(std::string& to, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(to), format, std::forward<Values>(values)...);
}

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace attest
