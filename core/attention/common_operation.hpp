#pragma once

#include <span>
#include <string>

#include "core/attention/operation.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// The operation that all of the problems ask for; forward where there are none. Throws
/// InvalidInput naming two operations where they differ.
[[nodiscard]] const Operation& common_operation(std::span<const Problem> problems);

/// The problem that a text asks of `operation`. Throws InvalidInput for a text that is no problem
/// or names another operation.
[[nodiscard]] Problem problem_of(const Operation& operation, const std::string& text);

}  // namespace attest
