// The exact answer of gradient_operation, in double, and the bound of kernels that form O and LSE
// themselves.
//
// Derivation, in the notation of backward/gradient_bound.hpp, whose steps all hold with the LSE and
// the delta that the kernel forms, wherever these are within e and d of the exact ones: e adds to H
// and d to the error of delta.
//   e   the bound of LSE by the kernel's forward roundings: ln of its sum of weights, by which it
//       divides, whatever it makes of the maximum.
//   d   Two ways are usual, and the larger error counts. As dO.O of its own O it is sum_c |dO_c|
//       times the bound of O_c. As sum_j P_j (dO.v_j), what softmax's derivative is by the chain
//       rule, with C and gamma as there: sum_j C_j (|g_j| + gamma_j) + p_j gamma_j, and each term
//       passes through the sum's additions and `of_normaliser` roundings more.
// dO V^T is stored, so that its product with P is rounded on its own before delta is taken away:
// gamma includes a rounding to the product's format or fp32, and d one of delta.
#include "cpu_reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/gradient_roundings.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/gradient.hpp"
#include "cpu_reference/backward/certificate.hpp"
#include "cpu_reference/backward/exact_gradient.hpp"
#include "cpu_reference/rounding/chain_error.hpp"

namespace attest {
namespace {

/// Divisions and products by the sum of weights that a term of delta passes through, at the most,
/// where a softmax was written out in operators.
constexpr double of_normaliser = 4;

/// A key's gradients need the forward pass of all rows of its group: about a tenth of a second for
/// so many products in 113 bits.
constexpr std::int64_t most_certified_products = 1 << 18;

/// Inputs in the order of backward_operation; O, LSE and dLSE are not looked at, and the last has
/// no columns.
Inputs as_of_backward(const Problem& problem, const Inputs& inputs) {
  Shape none = lse_shape(problem);
  none[3] = 0;
  return {inputs[gradient::q],
          inputs[gradient::k],
          inputs[gradient::v],
          Tensor<float>(output_shape(problem)),
          Tensor<float>(lse_shape(problem)),
          inputs[gradient::d_o],
          Tensor<float>(none)};
}

Problem forward_of(Problem problem) {
  problem.operation = &forward_operation;
  return problem;
}

GradientConstants constants_of(const Problem& problem, const GradientRoundings& how) {
  GradientConstants c = gradient_constants(how.backward, problem);
  c.product = stored_rounding(format_of(how.product_format));
  return c;
}

/// LSE and delta of rows that a kernel forms itself, in a forward pass of its own, with their
/// errors.
class OwnPass {
 public:
  OwnPass(const Problem& problem, const Inputs& inputs, const GradientConstants& c,
          const Answer& forward)
      : problem_(problem), inputs_(inputs), c_(c), forward_(forward) {}

  [[nodiscard]] SavedRow<double> row(std::int64_t b, std::int64_t h, std::int64_t n) const {
    SavedRow<double> row = exact_row(inputs_, forward_, b, h, n);
    const auto gradient = inputs_[backward::d_o].row(b, h, n);
    row.of_kernel.lse = forward_[forward::lse].bound.at(b, h, n, 0);
    row.of_reference = {forward_[forward::lse].own_error.at(b, h, n, 0),
                        of_output(gradient, forward_[forward::o].own_error.row(b, h, n))};
    const double of_o = of_output(gradient, forward_[forward::o].bound.row(b, h, n));
    row.of_kernel.delta = std::max(of_o, of_weights(b, h, n, row)) +
                          fp32_arithmetic.unit_roundoff * std::abs(row.delta);
    return row;
  }

 private:
  static double of_output(std::span<const float> gradient, std::span<const double> errors) {
    double sum = 0;
    for (std::size_t c = 0; c < errors.size(); ++c) {
      if (gradient[c] != 0) sum += std::abs(gradient[c]) * errors[c];
    }
    return sum;
  }

  double of_weights(std::int64_t b, std::int64_t h, std::int64_t n,
                    const SavedRow<double>& row) const {
    double errors = 0, sizes = 0;
    for (const std::int64_t key : visible_keys_of(problem_, b, n)) {
      const auto pair = gradient_pair(problem_, inputs_, b, h, n, key, row);
      const double weight = pair_errors(c_, pair, row.of_kernel).weight;
      const double product = stored_error<double>(
          c_.product, pair.g, c_.product_relative * pair.absolute_g + c_.product_absolute);
      const double largest = std::abs(pair.g) + product;
      errors += weight * largest + pair.p * product;
      sizes += (pair.p + weight) * largest;
    }
    const double steps = static_cast<double>(problem_.key_len) + of_normaliser;
    return errors + chain_error(steps, fp32_arithmetic.unit_roundoff) * sizes;
  }

  const Problem& problem_;
  const Inputs& inputs_;
  const GradientConstants& c_;
  const Answer& forward_;
};

Answer exact(const Problem& problem, const Inputs& given, const Roundings& roundings) {
  const auto& how = roundings.as<GradientRoundings>();
  const Problem of_forward = forward_of(problem);
  const Answer forward =
      reference_of(forward_operation)
          .exact(of_forward, {given[gradient::q], given[gradient::k], given[gradient::v]},
                 how.forward);
  const Inputs inputs = as_of_backward(problem, given);
  const GradientConstants c = constants_of(problem, how);
  const OwnPass pass(problem, inputs, c, forward);
  return mapped_gradients(problem, inputs, c, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    return pass.row(b, h, n);
  });
}

Certificate certify(const Problem& problem, const Inputs& given, const Answer& answer,
                    std::uint64_t seed, int rows) {
  const Problem of_forward = forward_of(problem);
  const Inputs inputs = as_of_backward(problem, given);
  const std::int64_t rows_of_key = problem.query_len * (problem.query_heads / problem.kv_heads);
  const std::int64_t products =
      rows_of_key * problem.key_len * (problem.head_dim + problem.output_dim());
  const OracleRowOf row_of = [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    const auto forward = oracle_row<Quad>(of_forward, inputs, b, h, n);
    SavedRow<Quad> row{forward.lse, 0, 0};
    const auto gradient = inputs[backward::d_o].row(b, h, n);
    for (std::size_t c = 0; c < gradient.size(); ++c) row.delta += forward.o[c] * gradient[c];
    return row;
  };
  return certify_gradients(problem, inputs, answer, seed, rows, row_of,
                           products <= most_certified_products);
}

const ReferenceRegistration registration{
    {.operation = &gradient_operation, .exact = exact, .certify = certify}};

}  // namespace
}  // namespace attest
