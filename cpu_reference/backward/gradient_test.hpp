#pragma once

#include <string>

#include "core/attention/problem.hpp"
#include "core/operations/backward.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/forward/oracle.hpp"

namespace attest {

/// The problem of a text, of the backward pass.
inline Problem backward_problem(const std::string& text) {
  return problem_from_string("backward " + text);
}

/// LSE and delta of an exact forward pass.
inline SavedRow<Wide> exact_row(const Problem& problem, const Inputs& inputs, std::int64_t b,
                                std::int64_t h, std::int64_t query) {
  const auto forward = oracle_row<Wide>(problem, inputs, b, h, query);
  SavedRow<Wide> row{forward.lse, 0, 0};
  const auto gradient = inputs[backward::d_o].row(b, h, query);
  for (std::size_t c = 0; c < gradient.size(); ++c) row.delta += forward.o[c] * gradient[c];
  take_lse_gradient(inputs, b, h, query, row);
  return row;
}

}  // namespace attest
