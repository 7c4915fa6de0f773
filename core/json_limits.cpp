#include "core/json_limits.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace attest {

void require_shallow_json(std::string_view text, std::string_view where) {
  constexpr int deepest = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // the next one ends no string
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) {
        throw InvalidInput(fmt::format("{}: brackets are nested deeper than {} at byte {}", where,
                                       deepest, i + 1));
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace attest
