#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/base/json.hpp"

namespace attest {

/// Problems that a function of Python takes, beyond what KernelInfo says by itself.
struct PythonLimits {
  bool is_grouped = false, has_one_kv_head = false, takes_any_scale = false, takes_no_keys = false,
       has_empty_rows = true;
  bool needs_positive_scale = false;
  /// ALiBi's distance is that from the key of a query's own number, without a mask too.
  bool counts_from_top_left = false;
  std::vector<Bias> biases{};             ///< that it takes besides none
  std::vector<ElementType> bias_types{};  ///< of Q, K and V that it takes beside a bias
  /// Right sides of its windows, -1: without an end; nothing: any.
  std::optional<std::vector<std::int64_t>> window_rights{};
  /// Heads and scores of all entries together, queries or keys, where more would take too long.
  std::int64_t most_heads = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_length = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_scores = std::numeric_limits<std::int64_t>::max();
  std::string why_not_more{};

  /// Sentence that says why the function does not take the problem, or nothing.
  [[nodiscard]] std::optional<std::string> why_not(const Problem& problem) const;
};

/// Limits from what python/attest_kernels/worker.py says of a function.
[[nodiscard]] PythonLimits python_limits(const Json& says);

}  // namespace attest
