#include "core/attention/key_lists.hpp"

#include <algorithm>
#include <limits>
#include <random>

namespace attest {
namespace {

/// The items that a list names, shuffled: the order of an engine's top-k.
std::vector<std::int32_t> shuffled_items(const Problem& problem, std::int64_t entry,
                                         std::int64_t list) {
  std::vector<std::int32_t> items;
  if (list * problem.list_rows >= problem.query_len_of(entry)) return items;
  for (std::int64_t item = 0; item < problem.list_items(entry); ++item) {
    if (problem.names_item(entry, list, item)) items.push_back(static_cast<std::int32_t>(item));
  }
  std::mt19937_64 engine(problem.list_seed + static_cast<std::uint64_t>(list));
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[engine() % i]);
  return items;
}

/// What no launch may read as an item: -1 as frameworks fill, far numbers, or an item that is there
/// but hidden from the list.
std::int32_t filler(const Problem& problem, std::int64_t entry, std::int64_t list,
                    std::int64_t slot) {
  const std::int64_t items = problem.list_items(entry);
  if (slot % 3 == 0) return -1;
  const std::int64_t other = items == 0 ? 0 : slot % items;
  if (slot % 3 == 1 && items > 0 && !problem.names_item(entry, list, other)) {
    return static_cast<std::int32_t>(other);
  }
  return std::numeric_limits<std::int32_t>::max();
}

}  // namespace

KeyListArrays key_list_arrays(const Problem& problem) {
  std::vector<std::vector<std::int32_t>> lists;
  KeyListArrays arrays;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    for (std::int64_t list = 0; list < problem.lists(); ++list) {
      lists.push_back(shuffled_items(problem, entry, list));
      arrays.counts.push_back(static_cast<std::int32_t>(lists.back().size()));
      arrays.room = std::max(arrays.room, std::ssize(lists.back()));
    }
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto entry = static_cast<std::int64_t>(i) / problem.lists();
    const auto list = static_cast<std::int64_t>(i) % problem.lists();
    for (std::int64_t slot = std::ssize(lists[i]); slot < arrays.room; ++slot) {
      lists[i].push_back(filler(problem, entry, list, slot));
    }
    arrays.items.insert(arrays.items.end(), lists[i].begin(), lists[i].end());
  }
  return arrays;
}

}  // namespace attest
