#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Bytes as hexadecimal digits, two each, small letters.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Bytes of such a text; nothing for any other.
[[nodiscard]] std::optional<std::vector<std::byte>> from_hex(std::string_view text);

}  // namespace attest
