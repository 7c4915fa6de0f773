#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attest {

/// A name from a file or a user, fit for a one-line message: control bytes become `?`, and what is
/// longer than `limit` bytes is cut.
[[nodiscard]] std::string printable(std::string_view name, std::size_t limit = 60);

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace attest
