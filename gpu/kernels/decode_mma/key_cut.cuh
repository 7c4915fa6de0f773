#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "gpu/kernels/decode_mma/chunks.cuh"

namespace attest {

/// "WHAT is GOT; allowed: ALLOWED".
inline std::string outside(const std::string& what, std::int64_t got, const std::string& allowed) {
  return what + " is " + std::to_string(got) + "; allowed: " + allowed;
}

/// A sentence why a kernel that counts in DecodeSizes cannot cut keys as the Plan says, by
/// fixed_keys, own or even; std::nullopt: it can, or the rule is another and the kernel's own
/// affair.
inline std::optional<std::string> why_not_cut(const Problem& problem, const Plan& plan) {
  constexpr std::int64_t most_chunks = 4096;                     // of a row
  constexpr std::int64_t largest_count = std::int64_t{1} << 30;  // it has 32 bits
  if (plan.key_split_rule == KeySplitRule::fixed_keys &&
      (plan.split_keys < chunk_step || plan.split_keys % chunk_step != 0)) {
    return outside("split_keys", plan.split_keys, "multiples of " + std::to_string(chunk_step));
  }
  if (plan.key_split_rule == KeySplitRule::even && plan.key_splits < 1) {
    return outside("key_splits", plan.key_splits, "1 and more");
  }
  const DecodeSizes sizes = DecodeSizes::of(problem, plan);
  if (sizes.most_chunks > most_chunks) {
    return outside("the number of chunks of a row", sizes.most_chunks,
                   "1 to " + std::to_string(most_chunks));
  }
  // Under a cascade the rows of all entries are one list; packed keys are one, too.
  const std::int64_t rows =
      problem.batch * problem.query_len * (problem.query_heads / problem.kv_heads);
  if (std::max({rows, problem.batch * problem.key_len, sizes.most_units()}) >= largest_count) {
    return "the problem has too many rows of a kv head, keys or blocks; allowed: below " +
           std::to_string(largest_count) + " of each";
  }
  return std::nullopt;
}

}  // namespace attest
