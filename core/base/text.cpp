#include "core/base/text.hpp"

#include <algorithm>

#include "core/base/json.hpp"

namespace attest {

std::string printable(std::string_view name, std::size_t limit) {
  std::string text(name.substr(0, limit));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return name.size() > limit ? text + "..." : text;
}

bool is_utf8(std::string_view text) {
  try {
    (void)Json(text).dump();  // which is strict
  } catch (const Json::type_error&) {
    return false;
  }
  return true;
}

}  // namespace attest
