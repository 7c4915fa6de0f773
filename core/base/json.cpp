#include "core/base/json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

std::string excerpt(const Json& json) {
  return printable(json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

bool is_number(const Json& json) {
  return json.is_number() || json == "nan" || json == "inf" || json == "-inf";
}

}  // namespace

Json parse_json(std::string_view text) {
  return Json::parse(text);
}

bool is_json(std::string_view text) {
  return Json::accept(text);
}

Json read_json(std::string_view text, std::string_view where, std::string_view expected) {
  require_shallow_json(text, where);
  require_distinct_keys(text, where);
  try {
    return parse_json(text);
  } catch (const Json::parse_error& error) {
    throw InvalidInput(
        fmt::format("{}: not JSON at byte {}; {} is expected", where, error.byte, expected));
  } catch (const Json::exception&) {
    throw InvalidInput(fmt::format("{}: it holds a number that is too large for a double", where));
  }
}

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
  using SortedJson = nlohmann::json;  // finds a key faster among very many
  std::vector<std::set<std::string>> open_objects;
  const auto check = [&](int /*depth*/, SortedJson::parse_event_t event, SortedJson& parsed) {
    if (event == SortedJson::parse_event_t::object_start) open_objects.emplace_back();
    if (event == SortedJson::parse_event_t::object_end) open_objects.pop_back();
    if (event == SortedJson::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!open_objects.back().insert(key).second) {
        throw InvalidInput(
            fmt::format("{}: key '{}' is given twice in one object", where, printable(key)));
      }
    }
    return true;
  };
  constexpr bool throws = false;
  [[maybe_unused]] const SortedJson read = SortedJson::parse(text, check, throws);
}

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double number_from_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  throw InvalidInput(fmt::format("{} is no number", excerpt(json)));
}

JsonObject::JsonObject(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object()) {
    throw InvalidInput(fmt::format("{}: is {}; allowed: an object", where_, excerpt(json)));
  }
}

bool JsonObject::has(std::string_view key) {
  if (std::ranges::find(asked_, key) == asked_.end()) asked_.emplace_back(key);
  return json_.contains(key);
}

const Json& JsonObject::at(std::string_view key) {
  if (!has(key)) {
    std::vector<std::string_view> keys;  // a misspelt one may be among them
    for (const auto& [name, value] : json_.items()) keys.push_back(name);
    throw InvalidInput(fmt::format("{}: key '{}' is missing; keys that are there: {}", where_, key,
                                   printable(fmt::format("{}", fmt::join(keys, ", ")), 200)));
  }
  return json_.at(key);
}

const std::string& JsonObject::text(std::string_view key) {
  const Json& value = at(key);
  if (!value.is_string()) reject(key, "a string");
  return value.get_ref<const std::string&>();
}

bool JsonObject::boolean(std::string_view key) {
  const Json& value = at(key);
  if (!value.is_boolean()) reject(key, "true, false");
  return value.get<bool>();
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json& value = at(key);
  // Beyond 2^63 - 1 a conversion to std::int64_t wraps.
  const bool fits =
      value.is_number_integer() &&
      (!value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>())) &&
      value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
  if (!fits) reject(key, fmt::format("an integer from {} to {}", low, high));
  return value.get<std::int64_t>();
}

std::uint64_t JsonObject::seed(std::string_view key) {
  const Json& value = at(key);
  if (!value.is_number_unsigned()) reject(key, "an integer from 0 to 2^64 - 1");
  return value.get<std::uint64_t>();
}

double JsonObject::finite(std::string_view key) {
  const Json& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) reject(key, "a finite number");
  return value.get<double>();
}

double JsonObject::number(std::string_view key) {
  const Json& value = at(key);
  if (!is_number(value)) reject(key, R"(a number, "nan", "inf" or "-inf")");
  return number_from_json(value);
}

std::size_t JsonObject::choice(std::string_view key, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text(key));
  if (found == names.end()) reject(key, fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

void JsonObject::reject(std::string_view key, std::string_view allowed) const {
  throw InvalidInput(
      fmt::format("{}: '{}' is {}; allowed: {}", where_, key, excerpt(json_.at(key)), allowed));
}

void JsonObject::finish() const {
  for (const auto& [key, value] : json_.items()) {
    if (std::ranges::find(asked_, key) == asked_.end()) {
      throw InvalidInput(fmt::format("{}: key '{}' is unknown; allowed: {}", where_, printable(key),
                                     fmt::join(asked_, ", ")));
    }
  }
}

}  // namespace attest
