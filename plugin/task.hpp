#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/mask.hpp"
#include "core/attention/problem.hpp"
#include "core/base/json.hpp"

namespace attest {

/// Sizes that a task asks for, both ends counted.
struct Sizes {
  std::int64_t least = 1, most = 1;
  /// True for a size that is asked for.
  [[nodiscard]] bool hold(std::int64_t size) const { return least <= size && size <= most; }
};

/// Task for whoever hands in a kernel: the problems, and through their element type the roundings
/// (fused_precision()). What a subject says of itself changes nothing of it.
struct Task {
  std::string text;  ///< as it was given
  std::vector<ElementType> element_types{ElementType::fp32};
  std::vector<Mask> masks{Mask::none};
  std::vector<std::int64_t> head_dims{64};
  Sizes query_len{1, 256}, key_len{1, 256}, heads{1, 4}, batch{1, 2};
  std::int64_t multiple = 1;             ///< of both lengths
  bool is_grouped = false;               ///< K and V may have fewer heads
  bool any_scale = false;                ///< else 1 / sqrt(head_dim)
  bool has_empty_rows = false;           ///< rows that see no key
  bool wants_lse = false;                ///< else O alone
  bool is_deterministic = false;         ///< two calls give the same bits
  bool has_tokens_before_heads = false;  ///< [B, N, H, D], else [B, H, N, D]

  /// A sentence for a problem that is not asked for, or nothing.
  [[nodiscard]] std::optional<std::string> why_not(const Problem& problem) const;
  /// The largest problem that is asked for: what is timed.
  [[nodiscard]] Problem largest() const;
  /// Task as python/attest_kernels/judged.py reads it.
  [[nodiscard]] Json to_json() const;
};

/// Name of a task, the words that it stands for, and a line about it.
struct NamedTask {
  std::string_view name, words, summary;
};
/// All tasks that have a name, in the order of the help.
[[nodiscard]] const std::vector<NamedTask>& named_tasks();

/// `NAME:WORD:...`: a named task and what differs from it, or words alone, which differ from
/// `forward`: `d64`, `d64,128`, `bf16`, `fp16,bf16`, `causal`, `none,causal_top_left`, `n1-512`,
/// `q1-16`, `k1-4096`, `h8`, `b1-4`, `multiple64`, `grouped`, `scale`, `empty_rows`, `lse`,
/// `deterministic`, `BNHD`. Throws InvalidInput.
[[nodiscard]] Task task_from(const std::string& text);

}  // namespace attest
