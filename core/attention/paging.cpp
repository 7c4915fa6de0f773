#include "core/attention/paging.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include "core/attention/element_type.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/inputs/random.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 2> table_forms{"dense", "csr"};
constexpr std::array<std::string_view, 3> unused_choices{"nan", "infinity", "large"};
constexpr std::uint64_t shuffle_stream = 95;
constexpr std::int64_t largest_page = 1 << 16, most_spare = 1 << 20;
constexpr std::string_view parts_of_text =
    "paged16, csr, joined, shared, spare3, columns2, shuffled7, infinity, large";

/// The pages of the pool in the order in which entries take them. The last one is taken first, so
/// that the largest number of a page is always in use.
std::vector<std::int32_t> pages_in_order(std::int64_t pool_pages, std::uint64_t seed) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(pool_pages));
  std::iota(order.begin(), order.end(), 0);
  if (seed == 0 || order.empty()) return order;
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    const auto bound = static_cast<std::int64_t>(i) + 1;
    std::swap(order[i],
              order[static_cast<std::size_t>(random_below(seed, shuffle_stream, i, bound))]);
  }
  std::swap(order.front(), *std::ranges::max_element(order));
  return order;
}

std::int64_t pages_of(std::int64_t keys, std::int64_t page_size) {
  return (keys + page_size - 1) / page_size;
}

/// Page number of a table entry that no key uses, in the row of an entry of the batch.
std::int32_t unused_page(const PageMap& map, Unused unused, std::size_t entry) {
  if (unused == Unused::nan) return -1;
  if (unused == Unused::infinity) return 2147480000;
  const auto& mate = map.pages[(entry + 1) % map.pages.size()];
  return mate.empty() ? 0 : mate.front();
}

/// The number behind `prefix`, or nothing.
template <typename T>
std::optional<T> number_behind(std::string_view prefix, std::string_view part) {
  if (!part.starts_with(prefix)) return std::nullopt;
  part.remove_prefix(prefix.size());
  T value{};
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (part.empty() || error != std::errc{} || end != part.data() + part.size()) return std::nullopt;
  return value;
}

bool read_part(std::string_view part, Paging& paging) {
  if (const auto size = number_behind<std::int64_t>("paged", part)) {
    paging.page_size = *size;
  } else if (const auto spare = number_behind<std::int64_t>("spare", part)) {
    paging.spare_pages = *spare;
  } else if (const auto columns = number_behind<std::int64_t>("columns", part)) {
    paging.spare_columns = *columns;
  } else if (const auto seed = number_behind<std::uint64_t>("shuffled", part)) {
    paging.shuffle_seed = *seed;
  } else if (part == "joined") {
    paging.joins_kv = true;
  } else if (part == "shared") {
    paging.shares_prefix = true;
  } else if (const auto form = std::ranges::find(table_forms, part); form != table_forms.end()) {
    paging.table = static_cast<TableForm>(form - table_forms.begin());
  } else if (const auto unused = std::ranges::find(unused_choices, part);
             unused != unused_choices.end()) {
    paging.unused = static_cast<Unused>(unused - unused_choices.begin());
  } else {
    return false;
  }
  return true;
}

void require_between(std::string_view field, std::int64_t value, std::int64_t low,
                     std::int64_t high) {
  if (value >= low && value <= high) return;
  throw InvalidInput(
      fmt::format("paging field '{}' is {}; allowed: {} to {}", field, value, low, high));
}

}  // namespace

std::span<const std::string_view> table_form_names() {
  return table_forms;
}

std::span<const std::string_view> unused_names() {
  return unused_choices;
}

float unused_value(Unused unused, ElementType type) {
  const auto large = static_cast<float>(format_of(type).max_finite);
  if (!has_nan(type)) return large;
  switch (unused) {
    case Unused::nan:
      return std::numeric_limits<float>::quiet_NaN();
    case Unused::infinity:
      return std::numeric_limits<float>::infinity();
    case Unused::large:
      break;
  }
  return large;
}

std::string to_string(const Paging& paging) {
  if (!paging.is_used()) return {};
  std::string text = fmt::format("paged{}", paging.page_size);
  if (paging.table != TableForm::dense) append(text, "/{}", table_forms[1]);
  if (paging.joins_kv) append(text, "/joined");
  if (paging.shares_prefix) append(text, "/shared");
  if (paging.spare_pages != 0) append(text, "/spare{}", paging.spare_pages);
  if (paging.spare_columns != 0) append(text, "/columns{}", paging.spare_columns);
  if (paging.shuffle_seed != 0) append(text, "/shuffled{}", paging.shuffle_seed);
  if (paging.unused != Unused::nan) {
    append(text, "/{}", unused_choices[static_cast<std::size_t>(paging.unused)]);
  }
  return text;
}

Paging paging_from_string(std::string_view text) {
  Paging paging;
  const std::string_view whole = text;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('/'), text.size());
    const std::string_view part = text.substr(0, end);
    if (!read_part(part, paging)) {
      throw InvalidInput(fmt::format("paging '{}': part '{}' is unknown; allowed: {}",
                                     printable(whole), printable(part), parts_of_text));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!paging.is_used()) {
    throw InvalidInput(fmt::format("paging '{}' names no page size; allowed: paged1 to paged{}",
                                   printable(whole), largest_page));
  }
  return paging;
}

void validate(const Paging& paging, const Problem& problem) {
  require_between("page_size", paging.page_size, 0, largest_page);
  require_between("spare_pages", paging.spare_pages, 0, most_spare);
  require_between("spare_columns", paging.spare_columns, 0, most_spare);
  if (!paging.is_used() && paging != Paging{}) {
    throw InvalidInput("paging has no page_size; allowed: 1 and more, or no paging at all");
  }
  if (paging.joins_kv && problem.values == Values::in_keys) {
    throw InvalidInput("paging joins K and V, and V is a part of K; allowed: V of its own");
  }
  if (paging.joins_kv && problem.output_dim() != problem.head_dim) {
    throw InvalidInput(
        fmt::format("paging joins K of {} and V of {} columns; allowed: as many in both",
                    problem.head_dim, problem.output_dim()));
  }
}

PageMap page_map(const Problem& problem, const Paging& paging) {
  PageMap map{.page_size = paging.page_size};
  std::int64_t longest = 0, taken = 0;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    map.lengths.push_back(problem.key_len_of(entry));
    longest = std::max(longest, map.lengths.back());
  }
  const std::int64_t shared = !paging.shares_prefix ? 0
                                                    : std::min(problem.shared_keys / map.page_size,
                                                               pages_of(longest, map.page_size));
  for (const std::int64_t keys : map.lengths) {
    taken += std::max<std::int64_t>(0, pages_of(keys, map.page_size) - shared);
  }
  map.shared_keys = shared * map.page_size;
  map.pool_pages = shared + taken + paging.spare_pages;
  const std::vector<std::int32_t> order = pages_in_order(map.pool_pages, paging.shuffle_seed);
  auto next = order.begin() + shared;
  for (const std::int64_t keys : map.lengths) {
    std::vector<std::int32_t>& pages = map.pages.emplace_back();
    for (std::int64_t page = 0; page < pages_of(keys, map.page_size); ++page) {
      pages.push_back(page < shared ? order[static_cast<std::size_t>(page)] : *next++);
    }
  }
  return map;
}

PageTableArrays page_table_arrays(const Problem& problem, const Paging& paging) {
  const PageMap map = page_map(problem, paging);
  PageTableArrays arrays{.pool_pages = map.pool_pages, .shared_keys = map.shared_keys};
  const bool is_csr = paging.table == TableForm::csr;
  if (is_csr) {
    arrays.starts.push_back(0);
  } else {
    arrays.columns = std::max<std::int64_t>(1, paging.spare_columns);
    for (const auto& pages : map.pages) {
      arrays.columns =
          std::max(arrays.columns, static_cast<std::int64_t>(pages.size()) + paging.spare_columns);
    }
  }
  for (std::size_t entry = 0; entry < map.pages.size(); ++entry) {
    const std::vector<std::int32_t>& pages = map.pages[entry];
    arrays.pages.insert(arrays.pages.end(), pages.begin(), pages.end());
    const auto used = static_cast<std::int64_t>(pages.size());
    if (is_csr) {
      arrays.starts.push_back(static_cast<std::int32_t>(arrays.pages.size()));
      const std::int64_t before_last = std::max<std::int64_t>(0, used - 1) * map.page_size;
      arrays.lengths.push_back(static_cast<std::int32_t>(map.lengths[entry] - before_last));
    } else {
      arrays.pages.insert(arrays.pages.end(), static_cast<std::size_t>(arrays.columns - used),
                          unused_page(map, paging.unused, entry));
      arrays.lengths.push_back(static_cast<std::int32_t>(map.lengths[entry]));
    }
  }
  if (is_csr) {
    arrays.pages.insert(arrays.pages.end(), static_cast<std::size_t>(paging.spare_columns),
                        unused_page(map, paging.unused, 0));
  }
  return arrays;
}

}  // namespace attest
