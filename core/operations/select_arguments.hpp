#pragma once

#include "core/operations/select.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// Arguments of a launch of a kernel that chooses keys, with the tensors by name. Q and K hold the
/// problem's element_type. Where the problem has lengths, rows of Q, K and weights lie packed as in
/// ForwardArguments; the lists do not.
struct SelectArguments {
  Problem problem;
  Plan plan;
  const void* q = nullptr;
  const void* k = nullptr;
  const float* weights = nullptr;  ///< [batch, query_heads, query_len], contiguous, or packed
  std::int32_t* keys = nullptr;    ///< [batch, query_len, top_k]; null where top_k is 0
  std::int32_t* counts = nullptr;  ///< [batch, query_len]
  float* scores = nullptr;         ///< [batch, query_len, top_k]; null where top_k is 0
  void* workspace = nullptr;       ///< workspace_bytes() of memory holding NaN
  const std::int32_t* query_starts = nullptr;  ///< [batch + 1], cu_seqlens; null without lengths
  const std::int32_t* key_starts = nullptr;    ///< cu_seqlens of K
  /// Lengths of entries [batch] where gaps lie between packed entries; otherwise null.
  const std::int32_t *query_lengths = nullptr, *key_lengths = nullptr;
  const std::uint8_t* key_mask = nullptr;  ///< [batch, key_len], 1: not hidden; null: no padding
  Strides q_strides, k_strides, weights_strides;

  /// Names the tensors of `all`. Implicit: a kernel's launch function takes these where
  /// KernelInfo::launch hands over Arguments.
  SelectArguments(const Arguments& all)
      : problem(all.problem),
        plan(all.plan),
        q(all[selecting::q].data),
        k(all[selecting::k].data),
        weights(static_cast<const float*>(all[selecting::weights].data)),
        keys(static_cast<std::int32_t*>(all[selecting::keys].data)),
        counts(static_cast<std::int32_t*>(all[selecting::counts].data)),
        scores(static_cast<float*>(all[selecting::scores].data)),
        workspace(all.workspace),
        query_starts(all.query_starts),
        key_starts(all.key_starts),
        query_lengths(all.query_lengths),
        key_lengths(all.key_lengths),
        key_mask(all.key_mask),
        q_strides(all[selecting::q].strides),
        k_strides(all[selecting::k].strides),
        weights_strides(all[selecting::weights].strides) {}

  /// Rows of an entry in a tensor whose entries may be packed.
  struct Entry {
    std::int64_t at = 0;     ///< entry whose strides apply: packed entries are one
    std::int64_t first = 0;  ///< row
    std::int64_t count = 0;
  };
  [[nodiscard]] ATTEST_HOST_DEVICE Entry queries_of(std::int64_t entry) const {
    return entry_of(query_starts, query_lengths, entry, problem.query_len);
  }
  [[nodiscard]] ATTEST_HOST_DEVICE Entry keys_of(std::int64_t entry) const {
    return entry_of(key_starts, key_lengths, entry, problem.key_len);
  }
  /// Number of the list of a query, among those of all entries.
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t list_of(std::int64_t entry,
                                                        std::int64_t query) const {
    return entry * problem.query_len + query;
  }

 private:
  ATTEST_HOST_DEVICE static Entry entry_of(const std::int32_t* starts, const std::int32_t* lengths,
                                           std::int64_t entry, std::int64_t length) {
    if (starts == nullptr) return {entry, 0, length};
    return {0, starts[entry],
            lengths == nullptr ? std::int64_t{starts[entry + 1]} - starts[entry] : lengths[entry]};
  }
};

}  // namespace attest
