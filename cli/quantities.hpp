#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verify/campaign/campaign.hpp"

namespace attest {

/// Texts of command-line options. All throw InvalidInput naming the option, what it got and what is
/// allowed.

/// `90s`, `5m`, `1h`, or a plain number of seconds; positive.
[[nodiscard]] double parse_seconds(std::string_view option, const std::string& text);
/// `512MiB`, `8GiB`, or a plain number of bytes; positive.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view option, const std::string& text);
/// `2/5`: the second of five parts.
[[nodiscard]] Shard parse_shard(std::string_view option, const std::string& text);

}  // namespace attest
