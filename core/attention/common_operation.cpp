#include "core/attention/common_operation.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace attest {

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

}  // namespace attest
