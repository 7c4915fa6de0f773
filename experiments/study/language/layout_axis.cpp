#include "experiments/study/language/layout_axis.hpp"

#include <algorithm>
#include <array>

#include "core/base/quantity.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 2> orders{"in_order", "shuffled"};
constexpr std::array<std::string_view, 2> prefixes{"copied", "shared"};
constexpr std::uint64_t shuffle_seed = 1;  // studies ask whether pages are shuffled, not how

const std::array<LayoutAxis, 4> axes{
    {{.name = "page_size",
      .summary = "keys of a page, found through a block table; 0: K and V are contiguous",
      .low = 0,
      .high = 65536,
      .get = [](const Paging& p) { return static_cast<double>(p.page_size); },
      .set = [](Paging& p, double value) { p.page_size = static_cast<std::int64_t>(value); }},
     {.name = "page_table",
      .summary = "a row for every entry, or one after the other",
      .choices = table_form_names(),
      .get = [](const Paging& p) { return static_cast<double>(p.table); },
      .set = [](Paging& p, double value) { p.table = static_cast<TableForm>(value); }},
     {.name = "page_order",
      .summary = "where pages lie: in the order of the keys, or anywhere",
      .choices = orders,
      .get = [](const Paging& p) { return p.shuffle_seed != 0 ? 1.0 : 0.0; },
      .set = [](Paging& p, double value) { p.shuffle_seed = value != 0 ? shuffle_seed : 0; }},
     {.name = "prefix",
      .summary = "pages full of shared_keys: in memory once an entry, or once",
      .choices = prefixes,
      .get = [](const Paging& p) { return p.shares_prefix ? 1.0 : 0.0; },
      .set = [](Paging& p, double value) { p.shares_prefix = value != 0; }}}};

}  // namespace

std::span<const LayoutAxis> layout_axes() {
  return axes;
}

const LayoutAxis* find_layout_axis(std::string_view name) {
  const auto found = std::ranges::find(axes, name, &LayoutAxis::name);
  return found == axes.end() ? nullptr : &*found;
}

std::string text_of(const LayoutAxis& axis, const Paging& paging) {
  const double value = axis.get(paging);
  return axis.is_choice() ? std::string(axis.choices[static_cast<std::size_t>(value)])
                          : format_number(value);
}

void set_value(const LayoutAxis& axis, Paging& paging, std::string_view text) {
  if (axis.is_choice()) {
    axis.set(paging,
             static_cast<double>(std::ranges::find(axis.choices, text) - axis.choices.begin()));
  } else {
    axis.set(paging, quantity_from(text).value().value);
  }
}

}  // namespace attest
