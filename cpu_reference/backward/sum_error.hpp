#pragma once

#include <limits>

#include "cpu_reference/backward/exact_gradient.hpp"

namespace attest {

/// Error of a gradient that is one sum of terms, of a bias or a sink: steps 11 and 12 of
/// gradient_bound.hpp, once all terms are known. `of_sum` is the sum's relative error, `absolute`
/// and `errors` are the sums of the terms' sizes and errors. Infinity where it may overflow.
[[nodiscard]] inline double sum_error(const GradientConstants& c, double of_sum, double absolute,
                                      double errors) {
  const double largest = evaluation_slack * (1 + of_sum) * (absolute + errors);
  if (!(largest < c.max_finite)) return std::numeric_limits<double>::infinity();
  return evaluation_slack * (errors + of_sum * (absolute + errors));
}

}  // namespace attest
