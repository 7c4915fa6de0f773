#include "core/attention/common_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::string_view separators = " ,";

/// Operation that a problem's text names; nullptr where none of its words is one, and the problem
/// is of forward.
const Operation* named_operation(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    for (const Operation* operation : all_operations()) {
      if (operation->name == text.substr(0, end)) return operation;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return nullptr;
}

}  // namespace

const Operation& common_operation(std::span<const Problem> problems) {
  if (problems.empty()) return *Problem{}.operation;
  const Operation& first = *problems.front().operation;
  for (const Problem& problem : problems) {
    if (problem.operation == &first) continue;
    throw InvalidInput(fmt::format("problems ask for {} and for {}; allowed: one operation",
                                   first.name, problem.operation->name));
  }
  return first;
}

Problem problem_of(const Operation& operation, const std::string& text) {
  const Operation* const named = named_operation(text);
  if (named != nullptr && named != &operation) {
    throw InvalidInput(fmt::format("--problem '{}' asks for {}; allowed: {}", printable(text),
                                   named->name, operation.name));
  }
  // Fields that it alone has are read as its own.
  const bool says_nothing = text.find_first_not_of(separators) == text.npos;
  Problem problem = problem_from_string(
      named != nullptr || says_nothing ? text : fmt::format("{} {}", operation.name, text));
  problem.operation = &operation;
  validate(problem);
  return problem;
}

}  // namespace attest
