#include "core/base/near_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace attest {
namespace {

/// Letters to put in, take out or change [Levenshtein 1966].
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_names(std::string_view got, std::span<const std::string> names) {
  constexpr std::size_t longest = 120, most = 3;
  if (got.empty() || got.size() > longest) return {};
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : names) {
    // `k5` stands for k5_padded_tiles, `len` for key_len.
    const bool is_part = got.size() >= 2 && name.find(got) != std::string::npos;
    std::size_t edits = is_part ? 1 : edits_between(got, name);
    // `casual` for causal_top_left: what was typed may be a beginning.
    if (got.size() >= 4) edits = std::min(edits, edits_between(got, name.substr(0, got.size())));
    const std::size_t most_edits = got.size() < 2 ? 0 : std::max<std::size_t>(1, got.size() / 3);
    if (edits <= most_edits) near.emplace_back(edits, name);
  }
  std::ranges::stable_sort(near, {}, &std::pair<std::size_t, std::string>::first);
  std::vector<std::string> nearest;
  for (auto& [edits, name] : near) {
    if (nearest.size() < most) nearest.push_back(std::move(name));
  }
  return nearest;
}

std::string near_or_all(std::string_view got, std::span<const std::string> names) {
  const std::vector<std::string> near = near_names(got, names);
  if (!near.empty()) return fmt::format("near: {}", fmt::join(near, ", "));
  return fmt::format("allowed: {}", fmt::join(names, ", "));
}

}  // namespace attest
