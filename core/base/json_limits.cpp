#include "core/base/json_limits.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

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

void require_distinct_keys(std::string_view text, std::string_view where) {
  using Json = nlohmann::json;
  std::vector<std::set<std::string>> open_objects;
  const auto check = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!open_objects.back().insert(key).second) {
        throw InvalidInput(
            fmt::format("{}: key '{}' is given twice in one object", where, printable(key)));
      }
    }
    return true;
  };
  constexpr bool throws = false;
  [[maybe_unused]] const Json read = Json::parse(text, check, throws);
}

}  // namespace attest
