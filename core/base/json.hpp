#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace attest {

/// Keys keep the order in which they are written.
using Json = nlohmann::ordered_json;

/// Json::parse and Json::accept, compiled once: the parser is a third of the compile time of a file
/// that calls it. Text from outside passes core/base/json_limits.hpp first. parse_json throws what
/// Json::parse throws.
[[nodiscard]] Json parse_json(std::string_view text);
[[nodiscard]] bool is_json(std::string_view text);

}  // namespace attest
