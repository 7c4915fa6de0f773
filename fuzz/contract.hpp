#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string_view>

#include "core/base/error.hpp"

namespace attest {

/// Throws std::logic_error unless `holds`: the target has found something.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Bad input gives InvalidInput and nothing else, with one line that a terminal can show.
template <typename Parse>
void returns_or_complains(const Parse& parse) {
  try {
    parse();
  } catch (const InvalidInput& error) {
    const std::string_view message = error.what();
    require(!message.empty(), "a complaint says something");
    require(message.size() < 10'000, "a complaint is no flood");
    require(std::ranges::none_of(message, [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
            "a complaint is one line");
  }
}

[[nodiscard]] inline std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace attest
