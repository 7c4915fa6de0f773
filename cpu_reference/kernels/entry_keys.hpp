#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attention/key_lists.hpp"
#include "core/attention/mask.hpp"
#include "core/attention/problem.hpp"

// Keys that queries of an entry see, from the index arrays of a launch, for kernels on the CPU.
namespace attest {

/// The keys that query n of entry b sees, of `range` by its mask, as the arrays of prefixes and
/// documents say; padding and lists apart. Neither end of the range falls as n grows. `keys`: those
/// of the entry; `a`: ForwardArguments or BackwardArguments.
template <typename KernelArguments>
[[nodiscard]] KeyRange with_prefix_and_document(const KernelArguments& a, std::int64_t b,
                                                std::int64_t keys, std::int64_t n, KeyRange range) {
  const Problem& p = a.problem;
  if (a.prefix_lengths != nullptr) {
    range.end = std::max<std::int64_t>(range.end, a.prefix_lengths[b]);
  }
  if (a.key_documents == nullptr) return range;
  const std::int32_t* const first = a.key_documents + b * p.key_len;
  const auto [begin, end] =
      std::equal_range(first, first + keys, a.query_documents[b * p.query_len + n]);
  range.end = std::min<std::int64_t>(range.end, end - first);
  range.begin = std::min(std::max<std::int64_t>(range.begin, begin - first), range.end);
  return range;
}

/// The keys of an entry that the list of query n names, true.
[[nodiscard]] inline std::vector<bool> listed_keys(const KeyLists& lists, std::int64_t keys,
                                                   std::int64_t b, std::int64_t n) {
  std::vector<bool> listed(static_cast<std::size_t>(keys), false);
  const std::int64_t list = lists.list_of(b, n);
  for (std::int64_t i = 0; i < lists.counts[list]; ++i) {
    const std::int64_t first = lists.items_of(list)[i] * lists.keys;
    for (std::int64_t key = first; key < std::min(first + lists.keys, keys); ++key) {
      listed[static_cast<std::size_t>(key)] = true;
    }
  }
  return listed;
}

}  // namespace attest
