#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace attest {

/// How the answer is computed. A Plan may change speed; it may change the answer by rounding only.
/// A field a kernel does not use stays 0 and is not printed.
struct Plan {
  std::int64_t query_tile = 0;  ///< Br: query rows that a block handles at a time
  std::int64_t key_tile = 0;    ///< Bc: keys that are processed between two rescales
  std::int64_t key_splits = 0;  ///< parts of the key range computed apart and merged at the end

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Every field of Plan with its name: text, JSON, generators and shrinkers go through this list.
struct PlanField {
  std::string_view name;        ///< in JSON and YAML
  std::string_view short_name;  ///< in keys
  std::int64_t Plan::*member;
};
inline constexpr std::array<PlanField, 3> plan_fields{{
    {"query_tile", "qt", &Plan::query_tile},
    {"key_tile", "kt", &Plan::key_tile},
    {"key_splits", "ks", &Plan::key_splits},
}};

/// `qt32 kt16`, or `-` when no field is set.
[[nodiscard]] std::string to_string(const Plan& plan);

}  // namespace attest
