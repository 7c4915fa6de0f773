#include "experiments/study/language/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/base/quantity.hpp"
#include "core/inputs/input_family.hpp"

namespace attest {
namespace {

/// Axes are doubles.
constexpr double largest_seed = 0x1p53;

double number(const AxisValue& value) {
  return std::get<double>(value);
}

std::vector<std::string> strings(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

std::size_t place_of(const std::vector<std::string>& names, const AxisValue& value) {
  return static_cast<std::size_t>(std::ranges::find(names, std::get<std::string>(value)) -
                                  names.begin());
}

/// The value in effect.
AxisValue value_in_effect(const ProblemField& field, const Problem& problem) {
  if (field.in_effect != nullptr) return static_cast<double>(field.in_effect(problem));
  return std::visit(
      []<typename Value>(Value value) -> AxisValue {
        if constexpr (std::is_arithmetic_v<Value>) {
          return static_cast<double>(value);
        } else {
          return std::string(value);
        }
      },
      value_of(field, problem));
}

void set_field(const ProblemField& field, Problem& problem, const AxisValue& value) {
  FieldValue set = value_of(field, problem);
  std::visit(
      [&]<typename Value>(Value& member) {
        if constexpr (std::is_arithmetic_v<Value>) {
          member = static_cast<Value>(number(value));
        } else {
          member = std::get<std::string>(value);
        }
      },
      set);
  set_value(field, problem, set);
}

Axis axis_of(const ProblemField& field) {
  Axis axis{.group = Axis::Group::problem,
            .name = std::string(field.axis_name()),
            .summary = std::string(field.summary),
            .low = field.low,
            .high = field.high,
            .is_whole = field.kind() != FieldKind::real,
            .get = [&field](const Case& c) { return value_in_effect(field, c.problem); },
            .set = [&field](Case& c, const AxisValue& v) { set_field(field, c.problem, v); },
            .problem_field = &field};
  if (field.kind() == FieldKind::choice) axis.choices = strings(field.choices);
  if (field.kind() == FieldKind::seed) axis.high = largest_seed;
  // A study that wants what 0 stands for leaves the field out.
  if (field.in_effect != nullptr) axis.low = 1;
  return axis;
}

/// Queries and as many keys.
Axis both_lengths(const Axis& queries) {
  Axis both = queries;
  both.name = "length";
  both.summary = "queries and as many keys";
  both.get = [](const Case& c) -> std::optional<AxisValue> {
    if (c.problem.query_len != c.problem.key_len) return std::nullopt;
    return static_cast<double>(c.problem.query_len);
  };
  both.set = [](Case& c, const AxisValue& value) {
    c.problem.query_len = c.problem.key_len = static_cast<std::int64_t>(number(value));
  };
  return both;
}

Axis axis_of(const PlanField& field) {
  Axis axis{.group = Axis::Group::plan,
            .name = std::string(field.name),
            .choices = strings(field.values),
            .low = 1,
            .high = 1 << 20,
            .plan_field = &field};
  axis.get = [&field](const Case& c) -> std::optional<AxisValue> {
    const std::int64_t value = c.plan.*field.member;
    if (field.member == &Plan::key_splits && value == 0) return 1.0;
    if (value == 0) return std::nullopt;
    if (field.is_choice()) return text_of(field, value);
    return static_cast<double>(value);
  };
  axis.set = [&field, names = axis.choices](Case& c, const AxisValue& value) {
    c.plan.*field.member = field.is_choice() ? static_cast<std::int64_t>(place_of(names, value)) + 1
                                             : static_cast<std::int64_t>(number(value));
  };
  return axis;
}

/// A choice of the paging: `get` and `set` its place among the names.
Axis paging_choice(std::string name, std::string summary, std::vector<std::string> names,
                   std::size_t (*get)(const Paging&), void (*set)(Paging&, std::size_t)) {
  Axis axis{.group = Axis::Group::layout,
            .name = std::move(name),
            .summary = std::move(summary),
            .choices = std::move(names)};
  axis.get = [get, choices = axis.choices](const Case& c) {
    return choices[get(c.layouts.paging)];
  };
  axis.set = [set, choices = axis.choices](Case& c, const AxisValue& value) {
    set(c.layouts.paging, place_of(choices, value));
  };
  return axis;
}

void add_layout_axes(std::vector<Axis>& axes) {
  axes.push_back(
      {.group = Axis::Group::layout,
       .name = "page_size",
       .summary = "keys of a page, found through a block table; 0: K and V are contiguous",
       .high = 65536,
       .get = [](const Case& c) { return static_cast<double>(c.layouts.paging.page_size); },
       .set =
           [](Case& c, const AxisValue& value) {
             c.layouts.paging.page_size = static_cast<std::int64_t>(number(value));
           }});
  axes.push_back(paging_choice(
      "page_table", "a row for every entry, or one after the other", strings(table_form_names()),
      [](const Paging& p) { return static_cast<std::size_t>(p.table); },
      [](Paging& p, std::size_t at) { p.table = static_cast<TableForm>(at); }));
  // Studies ask whether pages are shuffled, not how.
  axes.push_back(paging_choice(
      "page_order", "where pages lie: in the order of the keys, or anywhere",
      {"in_order", "shuffled"},
      [](const Paging& p) { return static_cast<std::size_t>(p.shuffle_seed != 0 ? 1 : 0); },
      [](Paging& p, std::size_t at) { p.shuffle_seed = at; }));
  axes.push_back(paging_choice(
      "prefix", "pages full of shared_keys: in memory once an entry, or once", {"copied", "shared"},
      [](const Paging& p) { return static_cast<std::size_t>(p.shares_prefix ? 1 : 0); },
      [](Paging& p, std::size_t at) { p.shares_prefix = at == 1; }));
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const InputFamily& family : all_input_families()) names.push_back(family.name);
  return names;
}

void add_input_axes(std::vector<Axis>& axes) {
  axes.push_back(
      {.group = Axis::Group::inputs,
       .name = "family",
       .summary = "see attest list inputs",
       .registered_choices = family_names,
       .get = [](const Case& c) { return c.inputs.family; },
       .set = [](Case& c,
                 const AxisValue& value) { c.inputs.family = std::get<std::string>(value); }});
  axes.push_back(
      {.group = Axis::Group::inputs,
       .name = "magnitude",
       .summary = "size of the values",
       .low = -1e30,
       .high = 1e30,
       .is_whole = false,
       .get = [](const Case& c) { return c.inputs.magnitude; },
       .set = [](Case& c, const AxisValue& value) { c.inputs.magnitude = number(value); }});
  axes.push_back({.group = Axis::Group::inputs,
                  .name = "seed",
                  .high = largest_seed,
                  .is_key = false,
                  .get = [](const Case& c) { return static_cast<double>(c.inputs.seed); },
                  .set =
                      [](Case& c, const AxisValue& value) {
                        c.inputs.seed = static_cast<std::uint64_t>(number(value));
                      }});
}

std::vector<Axis> make_axes() {
  std::vector<Axis> axes;
  for (const ProblemField& field : problem_fields()) {
    if (!field.is_axis) continue;
    axes.push_back(axis_of(field));
    if (field.name == "key_len") axes.push_back(both_lengths(axes[axes.size() - 2]));
  }
  for (const PlanField& field : plan_fields()) axes.push_back(axis_of(field));
  add_layout_axes(axes);
  add_input_axes(axes);
  return axes;
}

}  // namespace

std::string text_of(const AxisValue& value) {
  const auto* name = std::get_if<std::string>(&value);
  return name != nullptr ? *name : fmt::format("{:.15g}", std::get<double>(value));
}

std::string_view name_of(Axis::Group group) {
  constexpr std::array<std::string_view, 4> names{"problem", "plan", "layout", "inputs"};
  return names[static_cast<std::size_t>(group)];
}

std::string Axis::full_name() const {
  return fmt::format("{}.{}", name_of(group), name);
}

bool Axis::is_choice() const {
  return !choices.empty() || registered_choices != nullptr;
}

std::vector<std::string> Axis::names() const {
  return registered_choices != nullptr ? registered_choices() : choices;
}

std::string Axis::range() const {
  return fmt::format("a {}number from {} to {}", is_whole ? "whole " : "", format_number(low),
                     format_number(high));
}

bool Axis::is_in_range(double number) const {
  return number >= low && number <= high && (!is_whole || number == std::floor(number));
}

const std::vector<Axis>& all_axes() {
  static const std::vector<Axis> axes = make_axes();
  return axes;
}

std::vector<const Axis*> keys_of(Axis::Group group) {
  std::vector<const Axis*> keys;
  for (const Axis& axis : all_axes()) {
    if (axis.group == group && axis.is_key) keys.push_back(&axis);
  }
  return keys;
}

const Axis* find_axis(std::string_view full_name) {
  const std::size_t dot = full_name.find('.');
  if (dot == full_name.npos) return nullptr;
  for (const Axis& axis : all_axes()) {
    if (axis.name == full_name.substr(dot + 1) && name_of(axis.group) == full_name.substr(0, dot)) {
      return &axis;
    }
  }
  return nullptr;
}

const Axis* find_axis(Axis::Group group, std::string_view name) {
  const auto found = std::ranges::find_if(
      all_axes(), [&](const Axis& axis) { return axis.group == group && axis.name == name; });
  return found == all_axes().end() ? nullptr : &*found;
}

}  // namespace attest
