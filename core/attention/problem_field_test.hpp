#pragma once

// Problems in which one field differs, for tests that walk problem_fields().

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/attention/operation.hpp"
#include "core/attention/problem_field.hpp"
#include "core/base/error.hpp"

namespace attest {

inline Problem usual_problem() {
  return problem_from_string("b2 h10/5 q9 k7 d16");
}

/// The message of what the call throws; empty: it throws no InvalidInput.
template <typename Call>
std::string complaint_of(const Call& call) {
  try {
    call();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

inline bool is_valid(const Problem& problem) {
  return complaint_of([&] { validate(problem); }).empty();
}

/// A usual problem of a kind that has the field.
inline Problem problem_having(const ProblemField& field) {
  const Problem usual = usual_problem();
  if (field.belongs_to == nullptr) return usual;
  for (const ProblemField& choice : problem_fields()) {
    std::vector<FieldValue> values(choice.choices.begin(), choice.choices.end());
    if (choice.kind() == FieldKind::seed) values = {std::uint64_t{7}};
    for (const FieldValue& value : values) {
      Problem problem = usual;
      set_value(choice, problem, value);
      if (field.belongs_to(problem)) return problem;
    }
  }
  throw std::logic_error("no problem has the field " + std::string(field.name));
}

/// A usual problem of a kind that has not the field, which not all problems have.
inline Problem problem_lacking(const ProblemField& field) {
  for (const Operation* operation : all_operations()) {
    Problem problem = usual_problem();
    problem.operation = operation;
    if (!field.belongs_to(problem)) return problem;
  }
  throw std::logic_error("all problems have the field " + std::string(field.name));
}

/// Values to choose from, of the field's kind.
inline std::vector<FieldValue> some_values(const ProblemField& field) {
  switch (field.kind()) {
    case FieldKind::size:
      return {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{5}};
    case FieldKind::seed:
      return {~std::uint64_t{0}};
    case FieldKind::real:
      return {0.3F};
    case FieldKind::choice:
      break;
  }
  return {field.choices.begin(), field.choices.end()};
}

/// A problem of problem_having() in which the field has neither its default nor the usual value,
/// and no other field differs.
inline Problem problem_with_other(const ProblemField& field) {
  const Problem usual = problem_having(field);
  for (const FieldValue& value : some_values(field)) {
    Problem problem = usual;
    set_value(field, problem, value);
    if (value_of(field, usual) != value && !has_default(field, problem) && is_valid(problem)) {
      return problem;
    }
  }
  throw std::logic_error("no other value of the field " + std::string(field.name));
}

/// A usual problem that has the field, and uses its feature.
inline Problem problem_using(const ProblemField& field) {
  std::vector<FieldValue> values = some_values(field);
  if (field.kind() == FieldKind::size) values.emplace_back(std::int64_t{0});
  for (const FieldValue& value : values) {
    Problem problem = problem_having(field);
    set_value(field, problem, value);
    if (uses_feature(field, problem) && is_valid(problem)) return problem;
  }
  throw std::logic_error("no problem uses the feature of " + std::string(field.name));
}

/// The usual problem with values outside of the field's range, if it has one.
inline std::vector<Problem> problems_out_of_range(const ProblemField& field) {
  std::vector<FieldValue> values;
  if (field.kind() == FieldKind::size) {
    values = {std::llround(field.low) - 1, std::llround(field.high) + 1};
  } else if (field.kind() == FieldKind::real) {
    for (const double value : {field.low * 2 - 1, field.high * 2, std::nan("")}) {
      values.emplace_back(static_cast<float>(value));
    }
  }
  std::vector<Problem> problems;
  for (const FieldValue& value : values) {
    set_value(field, problems.emplace_back(problem_having(field)), value);
  }
  return problems;
}

}  // namespace attest
