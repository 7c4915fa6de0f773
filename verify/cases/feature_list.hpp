#pragma once

#include <initializer_list>
#include <string_view>

#include "verify/cases/coverage.hpp"

// How the list of features is put together; only its parts include this.
namespace attest {

using Predicate = std::function<bool(const Case&)>;

[[nodiscard]] Feature feature(std::string name, std::vector<int> zoo, Predicate holds);

/// Rows at the start that see no key although there are keys.
[[nodiscard]] std::int64_t empty_rows(const Case& c);
[[nodiscard]] bool family_is(const Case& c, std::initializer_list<std::string_view> names);

/// True if holds(entry, keys of the entry) is true of some entry.
template <typename Holds>
[[nodiscard]] bool any_entry(const Case& c, const Holds& holds) {
  for (std::int64_t entry = 0; entry < c.problem.batch; ++entry) {
    if (holds(entry, c.problem.key_len_of(entry))) return true;
  }
  return false;
}

/// Adds features of logits and V.
void add_value_features(std::vector<Feature>& list);
/// Adds features of what only some kernels offer: windows, softcap, value_dim, lengths, padding.
void add_extra_features(std::vector<Feature>& list);
/// Adds large sizes, and what else is drawn on purpose because chance would not (heavy_tail.hpp).
void add_tail_features(std::vector<Feature>& list);
/// K and V in pages, keys in chunks, few queries.
void add_paging_features(std::vector<Feature>& list);
/// Codes, scales and parts: fields that one operation has.
void add_own_features(std::vector<Feature>& list);

}  // namespace attest
