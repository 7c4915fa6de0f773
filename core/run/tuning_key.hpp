#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/attention/problem_field.hpp"

namespace attest {

/// A property of a problem, by its name in the file of the table. Words, not enumerators: a table
/// may be older or newer than this program.
struct TuningKeyPart {
  std::string_view name;
  InTuningKey kind = InTuningKey::exactly;
  std::variant<std::string, bool, std::int64_t> value;

  friend bool operator==(const TuningKeyPart&, const TuningKeyPart&) = default;
  friend auto operator<=>(const TuningKeyPart&, const TuningKeyPart&) = default;
};

/// Facts on which the fastest Plan depends, as far as a table of winners tells problems apart.
struct TuningKey {
  std::string kernel;
  std::string gpu;  ///< as the driver names it: `NVIDIA H200`
  /// The parts of the key, for every problem the same ones in the same order: the fields that enter
  /// keys (InTuningKey); `group`, query heads per KV head, behind the other buckets that must be
  /// the same; and `heads`, batch * query_heads, before the others that may differ.
  std::vector<TuningKeyPart> problem;

  friend bool operator==(const TuningKey&, const TuningKey&) = default;
  friend auto operator<=>(const TuningKey&, const TuningKey&) = default;
};

[[nodiscard]] TuningKey tuning_key(std::string_view kernel, const Problem& problem,
                                   std::string_view gpu);

/// Distance of two keys: octaves of heads, query_len and key_len, added up. Nothing when they
/// differ in anything else: a Plan that won there says nothing here [C31]. A mask without alignment
/// is either. Few queries (16 and fewer) are near nothing but their own buckets: how their keys are
/// best split depends on every size. The GPUs are not compared: cards have a distance of their own
/// (core/run/card.hpp).
[[nodiscard]] std::optional<int> octaves_between(const TuningKey& a, const TuningKey& b);

/// The GPU's name in Device::description(), which begins with it.
[[nodiscard]] std::string_view gpu_name_in(std::string_view description);

}  // namespace attest
