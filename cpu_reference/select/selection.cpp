#include "cpu_reference/select/selection.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace attest {
namespace {

/// The `place`-th largest number, from 1 on; -infinity behind the last.
double largest(std::vector<double> numbers, std::size_t place) {
  if (place == 0) return std::numeric_limits<double>::infinity();
  if (place > numbers.size()) return -std::numeric_limits<double>::infinity();
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(place - 1);
  std::ranges::nth_element(numbers, at, std::greater<>());
  return *at;
}

}  // namespace

Selection possible_selections(const std::vector<std::int64_t>& keys,
                              const std::vector<ScoreRange>& ranges, std::int64_t count) {
  const auto taken = static_cast<std::size_t>(count);
  Selection selection;
  selection.is_out.resize(keys.size(), count == 0);
  if (count == 0) return selection;
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return ranges[i].rank(); });
  for (std::size_t i = 0; i < taken; ++i) selection.value.push_back(keys[order[i]]);
  std::ranges::sort(selection.value);

  std::vector<double> lowest, highest;
  for (const ScoreRange& range : ranges) {
    lowest.push_back(range.lowest);
    highest.push_back(range.highest);
  }
  const double above_is_in = largest(highest, taken + 1), below_is_out = largest(lowest, taken);
  std::vector<std::int64_t> open;
  const bool are_all = taken == keys.size();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (are_all || ranges[i].lowest > above_is_in) {
      selection.least.push_back(keys[i]);
    } else if (ranges[i].highest < below_is_out) {
      selection.is_out[i] = true;
    } else {
      open.push_back(keys[i]);
    }
  }
  const auto rest = static_cast<std::ptrdiff_t>(taken - selection.least.size());
  selection.greatest = selection.least;
  selection.least.insert(selection.least.end(), open.begin(), open.begin() + rest);
  selection.greatest.insert(selection.greatest.end(), open.end() - rest, open.end());
  std::ranges::sort(selection.least);
  std::ranges::sort(selection.greatest);
  return selection;
}

}  // namespace attest
