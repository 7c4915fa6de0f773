#include "cli/quantities.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

/// A positive number and what follows it. from_chars would accept `inf` and `nan`.
std::optional<std::pair<double, std::string_view>> number_and_unit(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
  return std::pair(value, std::string_view(rest, static_cast<std::size_t>(end - rest)));
}

}  // namespace

double parse_seconds(std::string_view option, const std::string& text) {
  if (const auto parsed = number_and_unit(text)) {
    const auto [value, unit] = *parsed;
    const double factor = unit.empty() || unit == "s" ? 1
                          : unit == "m"               ? 60
                          : unit == "h"               ? 3600
                                                      : 0;
    if (factor > 0) return value * factor;
  }
  throw InvalidInput(
      fmt::format("{} is '{}'; allowed: a positive time such as 60s, 5m or 1h", option, text));
}

std::uint64_t parse_bytes(std::string_view option, const std::string& text) {
  if (const auto parsed = number_and_unit(text)) {
    const auto [value, unit] = *parsed;
    const double factor = unit.empty()    ? 1
                          : unit == "KiB" ? 0x1p10
                          : unit == "MiB" ? 0x1p20
                          : unit == "GiB" ? 0x1p30
                                          : 0;
    if (factor > 0 && value * factor >= 1 && value * factor < 0x1p60) {
      return static_cast<std::uint64_t>(value * factor);
    }
  }
  throw InvalidInput(
      fmt::format("{} is '{}'; allowed: a size such as 512MiB or 8GiB", option, text));
}

Shard parse_shard(std::string_view option, const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, shard.count);
    if (count.ec == std::errc() && count.ptr == end && shard.index >= 1 &&
        shard.index <= shard.count && shard.count <= 1'000'000) {
      --shard.index;
      return shard;
    }
  }
  throw InvalidInput(
      fmt::format("{} is '{}'; allowed: i/n with i from 1 to n, such as 2/5", option, text));
}

}  // namespace attest
