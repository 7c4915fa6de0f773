#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// The keys of one entry that padding does not hide, ascending: among them a query sees a range.
class KeptKeys {
 public:
  KeptKeys() = default;
  KeptKeys(const Problem& problem, std::int64_t entry) {
    for (std::int64_t key = 0; key < problem.key_len_of(entry); ++key) {
      if (!problem.is_padded(entry, key)) keys_.push_back(key);
    }
  }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(keys_.size()); }
  [[nodiscard]] std::int64_t operator[](std::int64_t place) const {
    return keys_[static_cast<std::size_t>(place)];
  }
  /// Places of the keys of a range.
  [[nodiscard]] KeyRange places_of(KeyRange keys) const {
    const auto place = [&](std::int64_t key) {
      return std::ranges::lower_bound(keys_, key) - keys_.begin();
    };
    return {place(keys.begin), place(keys.end)};
  }

 private:
  std::vector<std::int64_t> keys_;
};

}  // namespace attest
