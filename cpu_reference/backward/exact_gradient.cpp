#include "cpu_reference/backward/exact_gradient.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "core/attention/shared_bias.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// e and d: of a kernel's LSE and O, or of the reference's.
SavedErrors<double> errors_of_row(const Inputs& inputs, const Tensor<double>& lse,
                                  const Tensor<double>& o, std::int64_t b, std::int64_t h,
                                  std::int64_t n) {
  SavedErrors<double> errors{lse.at(b, h, n, 0), 0};
  const auto gradient = inputs[backward::d_o].row(b, h, n);
  for (std::size_t c = 0; c < gradient.size(); ++c) {
    if (gradient[c] != 0) errors.delta += std::abs(gradient[c]) * o.row(b, h, n)[c];
  }
  return errors;
}

/// Movement of the gradients by errors of LSE and delta.
class Movement {
 public:
  explicit Movement(const Problem& problem)
      : scale_(std::abs(static_cast<double>(problem.scale))),
        of_{Tensor<double>(query_shape(problem)), Tensor<double>(key_shape(problem)),
            Tensor<double>(value_shape(problem)),
            Tensor<double>(backward_operation[backward::d_sinks].shape(problem)),
            Tensor<double>(backward_operation[backward::d_bias].shape(problem))} {}

  /// `own`: by how much LSE and delta of the pair may be wrong themselves.
  void add(const Problem& problem, const Inputs& inputs, const Shape& at, std::int64_t key,
           const GradientPair<double>& pair, const SavedErrors<double>& errors,
           const SavedErrors<double>& own) {
    const auto [b, h, n, unused] = at;
    const double factor = std::exp(errors.lse + own.lse);
    const double of_weight = evaluation_slack * pair.p * pair.kept * (factor - 1);
    const double of_term = evaluation_slack * pair.p *
                           ((factor - 1) * std::abs(pair.r) + factor * (errors.delta + own.delta));
    const double of_dscore = pair.chi * of_term;
    const std::int64_t kv_head = problem.kv_head_of(h);
    add_row(backward::dq, {b, h, n, 0}, scale_ * of_dscore,
            inputs[backward::k].row(b, kv_head, key));
    add_row(backward::dk, {b, kv_head, key, 0}, scale_ * of_dscore,
            inputs[backward::q].row(b, h, n));
    add_row(backward::dv, {b, kv_head, key, 0}, of_weight, inputs[backward::d_o].row(b, h, n));
    if (problem.bias == Bias::none) return;
    of_[backward::d_bias.number].at(entries_share_bias(problem) ? 0 : b,
                                    heads_share_bias(problem) ? 0 : h, n, key) +=
        std::isfinite(of_term) ? of_term : infinity;
  }

  /// A row that exists, of a head whose sink is finite.
  void add_to_sink(std::int64_t h, double sink, const SavedRow<double>& row,
                   const SavedErrors<double>& errors, const SavedErrors<double>& own) {
    const double factor = std::exp(errors.lse + own.lse);
    of_[backward::d_sinks.number].at(0, h, 0, 0) +=
        evaluation_slack * std::exp(sink - row.lse) *
        ((factor - 1) * std::abs(row.delta) + factor * (errors.delta + own.delta));
  }

  [[nodiscard]] const Tensor<double>& of(OutputIndex output) const { return of_[output.number]; }

 private:
  void add_row(OutputIndex output, const Shape& at, double size, std::span<const float> factors) {
    const auto row = of_[output.number].row(at[0], at[1], at[2]);
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] += std::isfinite(size) ? size * std::abs(factors[c]) : infinity;
    }
  }

  double scale_;
  std::array<Tensor<double>, 5> of_;
};

}  // namespace

SavedRow<double> exact_row(const Inputs& inputs, const Answer& forward, std::int64_t b,
                           std::int64_t h, std::int64_t n) {
  SavedRow<double> row{forward[forward::lse].value.at(b, h, n, 0), 0, 0};
  const auto gradient = inputs[backward::d_o].row(b, h, n);
  const auto o = forward[forward::o].value.row(b, h, n);
  for (std::size_t c = 0; c < o.size(); ++c) {
    row.delta += gradient[c] * o[c];
    row.absolute_delta += std::abs(gradient[c] * o[c]);
  }
  take_lse_gradient(inputs, b, h, n, row);
  return row;
}

Answer exact_gradient(const Problem& problem, const Inputs& inputs, const BackwardRoundings& how,
                      const Answer& forward) {
  const SavedRowOf exact = [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    return exact_row(inputs, forward, b, h, n);
  };
  const SavedRowOf given = [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    return given_row<double>(inputs, b, h, n);
  };
  const GradientConstants constants = gradient_constants(how, problem);
  const Answer of_given = all_gradients(problem, inputs, constants, given);
  Answer answer = all_gradients(problem, inputs, constants, exact);
  Movement of_kernel(problem), of_reference(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const SavedRow<double> row = exact(b, h, n);
        const auto errors =
            errors_of_row(inputs, forward[forward::lse].bound, forward[forward::o].bound, b, h, n);
        const auto own = errors_of_row(inputs, forward[forward::lse].own_error,
                                       forward[forward::o].own_error, b, h, n);
        const double sink = forward::sink_of(problem, inputs, h);
        if (std::isfinite(sink) && n < problem.query_len_of(b)) {
          of_kernel.add_to_sink(h, sink, row, errors, own);
          of_reference.add_to_sink(h, sink, row, own, own);
        }
        for (const std::int64_t key : forward::keys_of_row(problem, inputs, b, h, n)) {
          const auto pair = gradient_pair(problem, inputs, b, h, n, key, row);
          of_kernel.add(problem, inputs, {b, h, n, 0}, key, pair, errors, own);
          of_reference.add(problem, inputs, {b, h, n, 0}, key, pair, own, own);
        }
      }
    }
  }
  for (std::size_t number = 0; number < answer.size(); ++number) {
    const OutputIndex output{number};
    OutputAnswer& of = answer[output];
    for (std::size_t i = 0; i < of.value.values().size(); ++i) {
      if (std::isnan(of.value.values()[i])) continue;
      double& own = of.own_error.values()[i];
      double& bound = of.bound.values()[i];
      own += of_reference.of(output).values()[i];
      bound = own + of_given[output].bound.values()[i] + of_kernel.of(output).values()[i];
      if (std::isnan(bound)) bound = infinity;
    }
  }
  return answer;
}

}  // namespace attest
