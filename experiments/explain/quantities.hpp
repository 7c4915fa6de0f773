#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

// Quantities as explanations print them.
namespace attest {

/// 4 significant digits and a binary prefix: `64.5 GiB`.
inline std::string bytes(double count) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; count >= 1024 && unit + 1 < units.size(); ++unit) count /= 1024;
  return fmt::format("{:.4g} {}", count, units[unit]);
}

inline std::string milliseconds(double seconds) {
  return fmt::format("{:.4g} ms", 1e3 * seconds);
}

inline std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace attest
