#include "core/near_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace attest {
namespace {

/// Characters to change, insert or remove (Levenshtein), or anything above `limit` once it is.
std::size_t edits_between(std::string_view a, std::string_view b, std::size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
    if (*std::ranges::min_element(row) > limit) return limit + 1;
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> names,
                                    std::size_t most) {
  const std::size_t limit = std::max<std::size_t>(name.size() / 3, 1);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& other : names) {
    const std::size_t edits = edits_between(name, other, limit);
    if (edits <= limit) near.emplace_back(edits, other);
  }
  std::ranges::stable_sort(near, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> result;
  for (auto& [edits, other] : near) {
    if (result.size() < most) result.push_back(std::move(other));
  }
  return result;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> names) {
  const std::vector<std::string> near = near_names(name, names);
  std::string text;
  for (std::size_t i = 0; i < near.size(); ++i) {
    const char* const before = i == 0 ? "; did you mean " : i + 1 < near.size() ? ", " : " or ";
    text += fmt::format("{}'{}'", before, near[i]);
  }
  return text.empty() ? text : text + "?";
}

}  // namespace attest
