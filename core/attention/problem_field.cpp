#include "core/attention/problem_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

// Larger sizes are legal for kernels, but a product of four of them must fit in 63 bits.
constexpr double longest = 1 << 24, most_heads = 1 << 16, widest = 1024;
constexpr double largest_real = std::numeric_limits<float>::max();

bool has_window(const Problem& problem) {
  return is_window(problem.mask);
}

std::vector<std::string_view> names_of_masks() {
  std::vector<std::string_view> names;
  for (const Mask mask : all_masks()) names.push_back(name_of(mask));
  return names;
}

std::vector<std::string_view> names_of_element_types() {
  std::vector<std::string_view> names;
  for (const ElementType type : all_element_types()) names.push_back(format_of(type).name);
  return names;
}

using Rows = std::array<ProblemField, 15>;

Rows make_rows() {
  static const std::vector<std::string_view> masks = names_of_masks();
  static const std::vector<std::string_view> element_types = names_of_element_types();
  return {{
      {.name = "batch",
       .summary = "entries of the batch",
       .member = &Problem::batch,
       .low = 1,
       .high = most_heads,
       .prefix = "b",
       .example = "b8",
       .is_always_written = true},
      {.name = "query_heads",
       .summary = "query heads",
       .member = &Problem::query_heads,
       .low = 1,
       .high = most_heads,
       .prefix = "h",
       .example = "h12",
       .is_always_written = true,
       .axis = "heads"},
      {.name = "kv_heads",
       .summary = "heads of K and V; heads if not given",
       .member = &Problem::kv_heads,
       .low = 1,
       .high = most_heads,
       .prefix = "/",
       .example = "h12/4",
       .is_always_written = true,
       .follow = [](Problem& p) { p.kv_heads = p.query_heads; }},
      {.name = "query_len",
       .summary = "queries",
       .member = &Problem::query_len,
       .low = 0,
       .high = longest,
       .prefix = "q",
       .example = "q4096",
       .is_always_written = true,
       .in_tuning_key = InTuningKey::as_near_bucket,
       .feature = FieldFeature{
           .name = "no queries",
           .flag = &Features::no_queries,
           .refusal = "needs at least one query",
           .is_used = [](const Problem& p) { return p.query_len == 0; },
           .take_away = [](Problem& p) { p.query_len = std::max<std::int64_t>(1, p.query_len); }}},
      {.name = "key_len",
       .summary = "keys; query_len if not given",
       .member = &Problem::key_len,
       .low = 0,
       .high = longest,
       .prefix = "k",
       .example = "k4096",
       .is_always_written = true,
       .follow = [](Problem& p) { p.key_len = p.query_len; },
       .in_tuning_key = InTuningKey::as_near_bucket},
      {.name = "head_dim",
       .summary = "columns of Q and K",
       .member = &Problem::head_dim,
       .low = 1,
       .high = widest,
       .prefix = "d",
       .example = "d64",
       .is_always_written = true,
       .in_tuning_key = InTuningKey::exactly},
      {.name = "value_dim",
       .summary = "columns of V and O; head_dim if not given",
       .member = &Problem::value_dim,
       .low = 0,
       .high = widest,
       .prefix = "dv",
       .example = "dv64",
       .in_effect = [](const Problem& p) { return p.output_dim(); },
       .in_tuning_key = InTuningKey::exactly,
       .feature =
           FieldFeature{.name = "value_dim",
                        .flag = &Features::value_dim,
                        .refusal = "has no value_dim apart from head_dim",
                        .is_used = [](const Problem& p) { return p.output_dim() != p.head_dim; }}},
      {.name = "mask",
       .summary = "which keys a query sees",
       .member = &Problem::mask,
       .choices = masks,
       .example = "a mask",
       .is_always_written = true,
       .in_tuning_key = InTuningKey::by_mask_name},
      {.name = "window_left",
       .summary = "keys before the diagonal under a window mask; -1: no end",
       .member = &Window::left,
       .low = -1,
       .high = longest,
       .prefix = "left",
       .example = "left64",
       .belongs_to = has_window,
       .in_tuning_key = InTuningKey::as_bucket},
      {.name = "window_right",
       .summary = "keys after the diagonal under a window mask; -1: no end",
       .member = &Window::right,
       .low = -1,
       .high = longest,
       .prefix = "right",
       .example = "right0",
       .belongs_to = has_window,
       .in_tuning_key = InTuningKey::as_bucket},
      {.name = "element_type",
       .summary = "format of Q, K, V and O",
       .member = &Problem::element_type,
       .choices = element_types,
       .example = "an element type",
       .is_always_written = true,
       .in_tuning_key = InTuningKey::by_name},
      {.name = "scale",
       .summary = "of the scores; 1 / sqrt(head_dim) if not given",
       .member = &Problem::scale,
       .low = -largest_real,
       .high = largest_real,
       .allowed = "any finite number",
       .prefix = "scale",
       .example = "scale0.125",
       .follow =
           [](Problem& p) { p.scale = default_scale(std::max<std::int64_t>(p.head_dim, 1)); }},
      {.name = "softcap",
       .summary = "c of c tanh(s / c); 0: none",
       .member = &Problem::softcap,
       .low = 0,
       .high = largest_real,
       .allowed = "0 (none) or a finite positive number",
       .prefix = "softcap",
       .example = "softcap30",
       .in_tuning_key = InTuningKey::whether_used,
       .feature =
           FieldFeature{
               .name = "softcap", .flag = &Features::softcap, .refusal = "has no softcap"}},
      {.name = "length_seed",
       .summary = "draws a length for each entry of the batch; 0: all are full",
       .member = &Problem::length_seed,
       .prefix = "lengths",
       .example = "lengths7",
       .in_tuning_key = InTuningKey::whether_used,
       .feature = FieldFeature{.name = "lengths",
                               .flag = &Features::lengths,
                               .refusal = "has no lengths of single entries of the batch"}},
      {.name = "padding_seed",
       .summary = "draws hidden keys; 0: none",
       .member = &Problem::padding_seed,
       .prefix = "padding",
       .example = "padding7",
       .in_tuning_key = InTuningKey::whether_used,
       .feature =
           FieldFeature{
               .name = "padding", .flag = &Features::padding, .refusal = "has no padding of keys"}},
  }};
}

/// Calls visit with a reference to the field's member.
template <typename SomeProblem, typename Visit>
decltype(auto) with_member(const ProblemField& field, SomeProblem& problem, const Visit& visit) {
  return std::visit(
      [&](auto member) -> decltype(auto) {
        if constexpr (std::is_same_v<decltype(member), std::int64_t Window::*>) {
          return visit(problem.window.*member);
        } else {
          return visit(problem.*member);
        }
      },
      field.member);
}

template <typename Member>
constexpr FieldKind kind_for() {
  if (std::is_enum_v<Member>) return FieldKind::choice;
  if (std::is_same_v<Member, float>) return FieldKind::real;
  return std::is_same_v<Member, std::uint64_t> ? FieldKind::seed : FieldKind::size;
}

std::size_t choice_from(const ProblemField& field, std::string_view name) {
  const auto found = std::ranges::find(field.choices, name);
  if (found != field.choices.end()) {
    return static_cast<std::size_t>(found - field.choices.begin());
  }
  std::string words(field.name);
  std::ranges::replace(words, '_', ' ');
  throw InvalidInput(
      fmt::format("{} '{}' is unknown; allowed: {}", words, name, fmt::join(field.choices, ", ")));
}

}  // namespace

std::span<const ProblemField> problem_fields() {
  static const Rows rows = make_rows();
  return rows;
}

FieldKind ProblemField::kind() const {
  const Problem any;
  return with_member(*this, any, [](const auto& value) {
    return kind_for<std::remove_cvref_t<decltype(value)>>();
  });
}

FieldValue value_of(const ProblemField& field, const Problem& problem) {
  return with_member(field, problem, [&](const auto& value) -> FieldValue {
    if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) {
      return field.choices[static_cast<std::size_t>(value)];
    } else {
      return value;
    }
  });
}

void set_value(const ProblemField& field, Problem& problem, const FieldValue& value) {
  with_member(field, problem, [&](auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_enum_v<Member>) {
      member = static_cast<Member>(choice_from(field, std::get<std::string_view>(value)));
    } else {
      member = std::get<Member>(value);
    }
  });
}

std::string text_of(const ProblemField& field, const Problem& problem) {
  return std::visit([](const auto& value) { return fmt::format("{}", value); },
                    value_of(field, problem));
}

std::optional<FieldValue> value_from(const ProblemField& field, std::string_view text) {
  FieldValue value = value_of(field, Problem{});
  const bool is_one = std::visit(
      [&]<typename Value>(Value& read) {
        if constexpr (std::is_same_v<Value, std::string_view>) {
          const auto found = std::ranges::find(field.choices, text);
          if (found != field.choices.end()) read = *found;
          return found != field.choices.end();
        } else {
          const char* const end = text.data() + text.size();
          const auto [last, error] = std::from_chars(text.data(), end, read);
          return error == std::errc{} && last == end;
        }
      },
      value);
  return is_one ? std::optional(value) : std::nullopt;
}

void set_default(const ProblemField& field, Problem& problem) {
  if (field.follow != nullptr) {
    field.follow(problem);
  } else {
    set_value(field, problem, value_of(field, Problem{}));
  }
}

bool has_default(const ProblemField& field, const Problem& problem) {
  Problem with_default = problem;
  set_default(field, with_default);
  return value_of(field, with_default) == value_of(field, problem);
}

void follow_given(Problem& problem, const std::function<bool(const ProblemField&)>& is_given) {
  for (const ProblemField& field : problem_fields()) {
    if (field.follow != nullptr && !is_given(field)) field.follow(problem);
  }
}

void require_in_range(const ProblemField& field, const Problem& problem) {
  with_member(field, problem, [&](const auto& value) {
    constexpr FieldKind kind = kind_for<std::remove_cvref_t<decltype(value)>>();
    if constexpr (kind == FieldKind::size || kind == FieldKind::real) {
      const auto number = static_cast<double>(value);
      if (number >= field.low && number <= field.high) return;
      throw InvalidInput(fmt::format(
          "problem field '{}' is {}; allowed: {}", field.name, value,
          field.allowed.empty() ? fmt::format("{} to {}", field.low, field.high) : field.allowed));
    }
  });
}

FieldForKernels for_kernels(const ProblemField& field, const Problem& problem) {
  return with_member(field, problem, [&](const auto& value) -> FieldForKernels {
    constexpr FieldKind kind = kind_for<std::remove_cvref_t<decltype(value)>>();
    if constexpr (kind == FieldKind::seed) {
      return {field.feature->name, std::int64_t{value != 0}};
    } else if constexpr (kind == FieldKind::real) {
      return {field.name, static_cast<double>(value)};
    } else {
      const bool is_followed = field.in_effect != nullptr;
      return {field.name,
              is_followed ? field.in_effect(problem) : static_cast<std::int64_t>(value)};
    }
  });
}

bool uses_feature(const ProblemField& field, const Problem& problem) {
  if (!field.feature) return false;
  return field.feature->is_used != nullptr ? field.feature->is_used(problem)
                                           : !has_default(field, problem);
}

void take_feature_away(const ProblemField& field, Problem& problem) {
  if (!field.feature) return;
  if (field.feature->take_away != nullptr) {
    field.feature->take_away(problem);
  } else {
    set_default(field, problem);
  }
}

}  // namespace attest
