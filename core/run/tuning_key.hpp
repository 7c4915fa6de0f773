#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/attention/problem.hpp"

namespace attest {

/// What the fastest Plan depends on, as far as a table of winners tells problems apart. Words, not
/// enumerators: a table may be older or newer than this program.
struct TuningKey {
  std::string kernel;
  std::string gpu;  ///< as the driver names it: `NVIDIA H200`
  std::string element_type;
  std::string mask;  ///< without its alignment where all agree: with as many keys as queries
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;                              ///< never 0: columns of V and O
  bool softcap = false, lengths = false, padding = false;  ///< whether there are
  // Buckets: the smallest power of two that is not below; 0 and -1 (no end) stay.
  std::int64_t window_left = -1, window_right = -1;
  std::int64_t group = 0;  ///< query heads per KV head
  std::int64_t heads = 0;  ///< batch * query_heads
  std::int64_t query_len = 0;
  std::int64_t key_len = 0;

  friend bool operator==(const TuningKey&, const TuningKey&) = default;
  friend auto operator<=>(const TuningKey&, const TuningKey&) = default;
};

[[nodiscard]] TuningKey tuning_key(std::string_view kernel, const Problem& problem,
                                   std::string_view gpu);

/// How far two keys are apart: octaves of query_len, key_len and heads, added up. Nothing when they
/// differ in anything else: a Plan that won there says nothing here [C31]. A mask without alignment
/// is either.
[[nodiscard]] std::optional<int> octaves_between(const TuningKey& a, const TuningKey& b);

/// The GPU's name in Device::description(), which begins with it.
[[nodiscard]] std::string_view gpu_name_in(std::string_view description);

/// `fa2_mma on NVIDIA H200: bf16 d128 none, group 1, heads 64, q4096 k4096`
[[nodiscard]] std::string to_string(const TuningKey& key);

}  // namespace attest
