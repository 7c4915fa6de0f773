#include "cpu_reference/backward/bias_gradient.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "core/attention/shared_bias.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/backward/sum_error.hpp"

namespace attest {
namespace {

/// Sums of an element: values and sizes, and errors of its terms.
struct TermSums {
  Tensor<double> value, absolute, errors, own_errors;

  explicit TermSums(const Shape& shape)
      : value(shape), absolute(shape), errors(shape), own_errors(shape) {}

  void add(const Shape& at, const PairTerm& term) {
    const auto [b, h, n, key] = at;
    value.at(b, h, n, key) += term.size;
    absolute.at(b, h, n, key) += std::abs(term.size);
    errors.at(b, h, n, key) += term.error;
    own_errors.at(b, h, n, key) += term.own_error;
  }
};

}  // namespace

OutputAnswer bias_gradient(const Problem& problem, const Inputs& inputs,
                           const GradientConstants& kernel, const SavedRowOf& row_of) {
  const Shape shape = backward_operation[backward::d_bias].shape(problem);
  if (problem.bias == Bias::none) {
    return {Tensor<double>(shape), Tensor<double>(shape), Tensor<double>(shape)};
  }
  const GradientConstants own =
      gradient_constants(reference_roundings(problem), problem, fp64_arithmetic);
  TermSums sums(shape);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const SavedRow<double> row = row_of(b, h, n);
        for (const std::int64_t key : forward::keys_of_row(problem, inputs, b, h, n)) {
          const auto pair = gradient_pair(problem, inputs, b, h, n, key, row);
          sums.add({entries_share_bias(problem) ? 0 : b, heads_share_bias(problem) ? 0 : h, n, key},
                   pair_terms(kernel, own, pair).bias);
        }
      }
    }
  }
  OutputAnswer answer{std::move(sums.value), std::move(sums.errors), std::move(sums.own_errors)};
  for (std::size_t i = 0; i < answer.value.values().size(); ++i) {
    double& x = answer.value.values()[i];
    double& bound = answer.bound.values()[i];
    double& error = answer.own_error.values()[i];
    const double absolute = sums.absolute.values()[i];
    // No row sees the key, or the term of each is 0 without an error.
    if (absolute == 0 && bound == 0) continue;
    if (!std::isfinite(x)) {
      x = bound = error = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    error = sum_error(own, own.of_dbias, absolute, error);
    bound = error + sum_error(kernel, kernel.of_dbias, absolute, bound);
  }
  return answer;
}

}  // namespace attest
