#pragma once

#include <cstdint>
#include <vector>

#include "cpu_reference/select/score_range.hpp"

namespace attest {

/// The sets of `count` of a row's keys that computed scores within their ranges may have, as far as
/// they can be told apart key by key.
///
/// A key is in all of them if less than `count` others can have its score or a larger one: if its
/// lowest one is above the highest ones of all but `count`. It is in none if so many others always
/// have a larger one. The rest may be in or out, so the i-th number of a set in ascending order
/// lies between those of the sets that take the first and the last of them.
struct Selection {
  std::vector<std::int64_t> value;            ///< by the exact scores, ties by the lowest number
  std::vector<std::int64_t> least, greatest;  ///< of the i-th number of any such set
  std::vector<bool> is_out;                   ///< of each key: it is in none
};

/// `keys` ascend; `ranges` are those of their scores. count <= keys.
[[nodiscard]] Selection possible_selections(const std::vector<std::int64_t>& keys,
                                            const std::vector<ScoreRange>& ranges,
                                            std::int64_t count);

}  // namespace attest
