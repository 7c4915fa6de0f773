#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// Lists of the keys that the queries of each entry see, in arrays of one device [cf.
/// FlexAttention's BlockMask, PyTorch 2.5: kv_num_blocks and kv_indices]. Queries [i rows, (i + 1)
/// rows) of an entry share its list i; an item j is the keys [j keys, (j + 1) keys) of the entry,
/// of which those past its length do not exist.
struct KeyLists {
  std::int64_t rows = 0;                 ///< queries that share a list; 0: there are no lists
  std::int64_t keys = 1;                 ///< of an item
  std::int64_t lists = 0;                ///< of an entry, as many as its largest has
  std::int64_t room = 0;                 ///< items between the beginnings of two lists
  const std::int32_t* items = nullptr;   ///< [batch, lists, room], each at most once, in any order
  const std::int32_t* counts = nullptr;  ///< [batch, lists]; what lies past a count names nothing

  [[nodiscard]] ATTEST_HOST_DEVICE bool is_used() const { return rows != 0; }
  /// Number of the list of a query, among those of all entries.
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t list_of(std::int64_t entry,
                                                        std::int64_t query) const {
    return entry * lists + query / rows;
  }
  [[nodiscard]] ATTEST_HOST_DEVICE const std::int32_t* items_of(std::int64_t list) const {
    return items + list * room;
  }
};

/// The numbers of the arrays of KeyLists.
struct KeyListArrays {
  std::int64_t room = 0;
  std::vector<std::int32_t> items, counts;
};

/// The arrays of a problem with a list_seed. Lists are shuffled, `room` is the longest one's count,
/// and slots past a count hold numbers of no item or of one that the list does not name.
[[nodiscard]] KeyListArrays key_list_arrays(const Problem& problem);

}  // namespace attest
