#pragma once

#include <string>

#include "core/attention/problem.hpp"
#include "core/operations/backward.hpp"

namespace attest {

/// The problem of a text, of the backward pass.
inline Problem backward_problem(const std::string& text) {
  Problem problem = problem_from_string(text);
  problem.operation = &backward_operation;
  return problem;
}

}  // namespace attest
