// The exact answer of backward_operation, in double, and the bound of its kernels.
#include "cpu_reference/reference.hpp"

#include <cmath>
#include <limits>

#include "cpu_reference/backward/bias_gradient.hpp"
#include "cpu_reference/backward/certificate.hpp"
#include "cpu_reference/backward/exact_gradient.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/backward/sink_gradients.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sums of one output, column by column: values, and what step 8 of gradient_bound.hpp adds up, for
/// the kernel and for the reference itself.
class GradientSums {
 public:
  explicit GradientSums(const Shape& shape)
      : value(shape), errors(shape), absolute(shape), own_errors(shape), own_absolute(shape) {}

  /// One pair: the term times each of `factors`, a row of an input.
  void add(std::int64_t b, std::int64_t h, std::int64_t n, const PairTerm& term,
           std::span<const float> factors) {
    const auto row = value.row(b, h, n);
    const auto of_error = errors.row(b, h, n), of_size = absolute.row(b, h, n);
    const auto own = own_errors.row(b, h, n), own_size = own_absolute.row(b, h, n);
    for (std::size_t c = 0; c < factors.size(); ++c) {
      const double x = factors[c], of_x = std::abs(x);
      row[c] += term.size * x;
      of_error[c] += times(term.error, of_x);
      of_size[c] += times(std::abs(term.size) + term.error, of_x);
      own[c] += times(term.own_error, of_x);
      own_size[c] += times(std::abs(term.size) + term.own_error, of_x);
    }
  }

  Tensor<double> value, errors, absolute, own_errors, own_absolute;

 private:
  /// An infinite error of what is multiplied by 0 decides nothing either.
  static double times(double error, double x) { return error == infinity ? error : error * x; }
};

/// max |x| of every row: [entries, heads, rows, 1].
Tensor<double> largest_of_rows(const Tensor<float>& tensor) {
  const Shape& shape = tensor.shape();
  Tensor<double> largest(Shape{shape[0], shape[1], shape[2], 1});
  const auto columns = static_cast<std::size_t>(shape[3]);
  for (std::size_t i = 0; i < tensor.values().size(); ++i) {
    double& of_row = largest.values()[i / columns];
    of_row = std::max<double>(of_row, std::abs(tensor.values()[i]));
  }
  return largest;
}

/// `of_row`: what each row loses besides, infinite where nothing is known of it; may be null.
OutputAnswer answer_of(GradientSums sums, const GradientSumBound& of, const GradientConstants& c,
                       const GradientConstants& own, const Tensor<double>* of_row = nullptr) {
  const auto columns = static_cast<std::size_t>(sums.value.shape()[3]);
  OutputAnswer answer{std::move(sums.value), std::move(sums.errors), std::move(sums.own_errors)};
  for (std::size_t i = 0; i < answer.value.values().size(); ++i) {
    double& x = answer.value.values()[i];
    double& bound = answer.bound.values()[i];
    double& error = answer.own_error.values()[i];
    const GradientElement element = gradient_element(
        c, own, of, {x, bound, sums.absolute.values()[i], error, sums.own_absolute.values()[i]},
        of_row == nullptr ? 0 : of_row->values()[i / columns]);
    x = element.value;
    bound = element.bound;
    error = element.own_error;
  }
  return answer;
}

}  // namespace

Answer mapped_gradients(const Problem& problem, const Inputs& inputs, const BackwardRoundings& how,
                        const SavedRowOf& row_of) {
  return mapped_gradients(problem, inputs, gradient_constants(how, problem), row_of);
}

Answer mapped_gradients(const Problem& problem, const Inputs& inputs, const GradientConstants& c,
                        const SavedRowOf& row_of) {
  const bool sums_in_units = c.dq_parts_in_units > 0;
  const GradientConstants own =
      gradient_constants(reference_roundings(problem), problem, fp64_arithmetic);
  GradientSums dq(query_shape(problem)), dk(key_shape(problem)), dv(value_shape(problem));
  Tensor<double> of_units(lse_shape(problem)), largest_keys, largest_values;
  if (sums_in_units) {
    largest_keys = largest_of_rows(inputs[backward::k]);
    largest_values = largest_of_rows(inputs[backward::v]);
  }
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const std::int64_t kv_head = problem.kv_head_of(h);
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto q = inputs[backward::q].row(b, h, n), d_o = inputs[backward::d_o].row(b, h, n);
        const auto row = row_of(b, h, n);
        DqRowInUnits in_units;
        for (const std::int64_t key : forward::keys_of_row(problem, inputs, b, h, n)) {
          const auto pair = gradient_pair(problem, inputs, b, h, n, key, row);
          const PairTerms terms = pair_terms(c, own, pair);
          dq.add(b, h, n, terms.dscore, inputs[backward::k].row(b, kv_head, key));
          dk.add(b, kv_head, key, terms.dscore, q);
          dv.add(b, kv_head, key, terms.weight, d_o);
          if (!sums_in_units) continue;
          // Not finite in one column is NaN in all.
          in_units.dscores +=
              is_given(pair) ? std::abs(terms.dscore.size) + terms.dscore.error : infinity;
          in_units.largest_key =
              std::max(in_units.largest_key, largest_keys.at(b, kv_head, key, 0));
          in_units.largest_value =
              std::max(in_units.largest_value, largest_values.at(b, kv_head, key, 0));
        }
        if (!sums_in_units) continue;
        for (const float x : d_o) in_units.gradient += std::abs(x);
        in_units.delta = std::abs(row.delta);
        in_units.delta_error = stored_error<double>(
            c.delta, row.delta, c.delta_relative * row.absolute_delta + c.delta_absolute);
        of_units.at(b, h, n, 0) = units_error(c, in_units);
      }
    }
  }
  const auto bounds = gradient_sum_bounds(problem, c, own);
  return {answer_of(std::move(dq), bounds[backward::dq.number], c, own,
                    sums_in_units ? &of_units : nullptr),
          answer_of(std::move(dk), bounds[backward::dk.number], c, own),
          answer_of(std::move(dv), bounds[backward::dv.number], c, own)};
}

Answer all_gradients(const Problem& problem, const Inputs& inputs, const GradientConstants& kernel,
                     const SavedRowOf& row_of) {
  Answer answer = mapped_gradients(problem, inputs, kernel, row_of);
  answer[backward::d_sinks] = sink_gradients(problem, inputs, kernel, row_of);
  answer[backward::d_bias] = bias_gradient(problem, inputs, kernel, row_of);
  return answer;
}

namespace {

Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
  return all_gradients(problem, inputs,
                       gradient_constants(roundings.as<BackwardRoundings>(), problem),
                       [&](std::int64_t b, std::int64_t h, std::int64_t n) {
                         return given_row<double>(inputs, b, h, n);
                       });
}

Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  return certify_gradients(problem, inputs, answer, seed, rows,
                           [&](std::int64_t b, std::int64_t h, std::int64_t query) {
                             return given_row<Quad>(inputs, b, h, query);
                           });
}

const ReferenceRegistration registration{
    {.operation = &backward_operation, .exact = exact, .certify = certify}};

}  // namespace
}  // namespace attest
