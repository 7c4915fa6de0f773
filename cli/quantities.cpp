#include "cli/quantities.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/base/error.hpp"
#include "core/base/quantity.hpp"
#include "core/base/text.hpp"

namespace attest {
double parse_seconds(std::string_view option, const std::string& text) {
  const auto quantity = quantity_from(text);
  if (quantity && quantity->dimension == Dimension::time && quantity->value > 0) {
    return quantity->value / 1e3;
  }
  throw InvalidInput(
      fmt::format("{} is '{}'; allowed: a positive time with its unit, such as 60s, 5min or 1h",
                  option, printable(text)));
}

std::uint64_t parse_bytes(std::string_view option, const std::string& text, double least) {
  const auto quantity = quantity_from(text);
  if (quantity && quantity->dimension == Dimension::bytes && quantity->value >= least &&
      quantity->value < 0x1p60) {
    return static_cast<std::uint64_t>(quantity->value);
  }
  throw InvalidInput(fmt::format(
      "{} is '{}'; allowed: a size with its unit, such as 512MiB or 8GiB{}", option,
      printable(text), least > 1 ? fmt::format(", from {:.0f}MiB on", least / 0x1p20) : ""));
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
