#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verify/campaign/campaign.hpp"

namespace attest {

/// Texts of command-line options. All throw InvalidInput naming the option, what it got and what is
/// allowed.

/// `90s`, `5min`, `1h`; positive.
[[nodiscard]] double parse_seconds(std::string_view option, const std::string& text);
/// `512MiB`, `8GiB`; at least so many bytes.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view option, const std::string& text,
                                        double least = 1);
/// Memory of a worker process: what the program itself needs must fit.
inline constexpr double least_worker_bytes = 0x1p26;
/// `2/5`: the second of five parts.
[[nodiscard]] Shard parse_shard(std::string_view option, const std::string& text);

}  // namespace attest
