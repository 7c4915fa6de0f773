#include "core/attention/problem_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <type_traits>
#include <utility>

#include "core/attention/operation.hpp"
#include "core/base/error.hpp"

namespace attest {
namespace {

/// Calls visit with a reference to the field's member.
template <typename SomeProblem, typename Visit>
decltype(auto) with_member(const ProblemField& field, SomeProblem& problem, const Visit& visit) {
  return std::visit(
      [&](auto member) -> decltype(auto) {
        if constexpr (std::is_same_v<decltype(member), std::int64_t Window::*>) {
          return visit(problem.window.*member);
        } else if constexpr (std::is_same_v<decltype(member), Code Codes::*> ||
                             std::is_same_v<decltype(member), Scales Codes::*> ||
                             std::is_same_v<decltype(member), ScaleFormat Codes::*>) {
          return visit(problem.codes.*member);
        } else {
          return visit(problem.*member);
        }
      },
      field.member);
}

template <typename Member>
constexpr FieldKind kind_for() {
  if (std::is_enum_v<Member> || std::is_pointer_v<Member>) return FieldKind::choice;
  if (std::is_same_v<Member, float>) return FieldKind::real;
  return std::is_same_v<Member, std::uint64_t> ? FieldKind::seed : FieldKind::size;
}

std::size_t index_of_choice(const ProblemField& field, std::string_view name) {
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

FieldKind ProblemField::kind() const {
  const Problem any;
  return with_member(*this, any, [](const auto& value) {
    return kind_for<std::remove_cvref_t<decltype(value)>>();
  });
}

FieldValue value_of(const ProblemField& field, const Problem& problem) {
  return with_member(field, problem, [&](const auto& value) -> FieldValue {
    using Member = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_enum_v<Member>) {
      return field.choices[static_cast<std::size_t>(value)];
    } else if constexpr (std::is_pointer_v<Member>) {
      return value->name;
    } else {
      return value;
    }
  });
}

void set_value(const ProblemField& field, Problem& problem, const FieldValue& value) {
  with_member(field, problem, [&](auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_enum_v<Member>) {
      member = static_cast<Member>(index_of_choice(field, std::get<std::string_view>(value)));
    } else if constexpr (std::is_pointer_v<Member>) {
      member = &operation_from_name(std::get<std::string_view>(value));
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
    } else if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(value)>>) {
      return {field.name, static_cast<std::int64_t>(index_of_choice(field, value->name))};
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
