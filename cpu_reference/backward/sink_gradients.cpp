#include "cpu_reference/backward/sink_gradients.hpp"

#include <cmath>
#include <limits>

#include "core/operations/forward.hpp"
#include "cpu_reference/backward/sum_error.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Terms of a head, added up: sizes and errors, of the kernel and of the reference.
struct TermSums {
  double value = 0, absolute = 0, errors = 0, own_errors = 0;
};

}  // namespace

OutputAnswer sink_gradients(const Problem& problem, const Inputs& inputs,
                            const GradientConstants& kernel, const SavedRowOf& row_of) {
  const Shape shape = backward_operation[backward::d_sinks].shape(problem);
  OutputAnswer answer{Tensor<double>(shape), Tensor<double>(shape), Tensor<double>(shape)};
  if (problem.sinks == Sinks::none) return answer;
  const GradientConstants own =
      gradient_constants(reference_roundings(problem), problem, fp64_arithmetic);
  for (std::int64_t h = 0; h < problem.query_heads; ++h) {
    const double sink = forward::sink_of(problem, inputs, h);
    if (sink == -infinity) continue;  // 0, and exact
    TermSums sums;
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t n = 0; n < problem.query_len_of(b); ++n) {
        const SavedRow<double> row = row_of(b, h, n);
        const double size = std::exp(sink - row.lse) * row.delta;
        PairTerm term{size, 0, 0};
        if (!std::isnan(row.lse) && std::isfinite(row.delta)) {
          term = pair_term(size, sink_term_error(kernel, sink, row, row.of_kernel),
                           sink_term_error(own, sink, row, row.of_reference));
        }
        sums.value -= term.size;
        sums.absolute += std::abs(term.size);
        sums.errors += term.error;
        sums.own_errors += term.own_error;
      }
    }
    const double own_error = sum_error(own, own.of_dsinks, sums.absolute, sums.own_errors);
    const bool is_nan = !std::isfinite(sums.value);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    answer.value.at(0, h, 0, 0) = is_nan ? nan : sums.value;
    answer.own_error.at(0, h, 0, 0) = is_nan ? nan : own_error;
    answer.bound.at(0, h, 0, 0) =
        is_nan ? nan : own_error + sum_error(kernel, kernel.of_dsinks, sums.absolute, sums.errors);
  }
  return answer;
}

}  // namespace attest
