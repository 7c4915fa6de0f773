// The exact answer of backward_operation, in double, and the bound of its kernels.
#include "cpu_reference/reference.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "core/base/error_ratio.hpp"
#include "core/inputs/random.hpp"
#include "cpu_reference/backward/exact_gradient.hpp"
#include "cpu_reference/backward/oracle.hpp"

namespace attest {
namespace {

using Quad = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_quad::backend_type,
                                           boost::multiprecision::et_off>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t certificate_stream = 0x67726164;  // "grad"

/// Sums of one output, column by column: values, and what step 8 of gradient_bound.hpp adds up, for
/// the kernel and for the reference itself.
class GradientSums {
 public:
  explicit GradientSums(const Shape& shape)
      : value(shape), errors(shape), absolute(shape), own_errors(shape), own_absolute(shape) {}

  /// One pair: `size` times each of `factors`, a row of an input. Where the error is infinite
  /// nothing is said of the sum, and its value is left out: it may be beyond double, too.
  void add(std::int64_t b, std::int64_t h, std::int64_t n, double size, double error,
           double own_error, std::span<const float> factors) {
    if (error == infinity) {
      size = 0;
      own_error = error;
    }
    const auto row = value.row(b, h, n);
    const auto of_error = errors.row(b, h, n), of_size = absolute.row(b, h, n);
    const auto own = own_errors.row(b, h, n), own_size = own_absolute.row(b, h, n);
    for (std::size_t c = 0; c < factors.size(); ++c) {
      const double x = factors[c], of_x = std::abs(x);
      row[c] += size * x;
      of_error[c] += times(error, of_x);
      of_size[c] += times(std::abs(size) + error, of_x);
      own[c] += times(own_error, of_x);
      own_size[c] += times(std::abs(size) + own_error, of_x);
    }
  }

  Tensor<double> value, errors, absolute, own_errors, own_absolute;

 private:
  /// An infinite error of what is multiplied by 0 decides nothing either.
  static double times(double error, double x) { return error == infinity ? error : error * x; }
};

double largest_of(std::span<const float> row) {
  double largest = 0;
  for (const float x : row) largest = std::max<double>(largest, std::abs(x));
  return largest;
}

/// `of_row`: what each row loses besides, infinite where nothing is known of it; may be null.
OutputAnswer answer_of(GradientSums sums, double factor, double size, const GradientConstants& c,
                       SumBound of_kernel, const GradientConstants& own, SumBound of_reference,
                       const Tensor<double>* of_row = nullptr) {
  const double lost = of_kernel.lost;
  const auto columns = static_cast<std::size_t>(sums.value.shape()[3]);
  OutputAnswer answer{std::move(sums.value), std::move(sums.errors), std::move(sums.own_errors)};
  for (std::size_t i = 0; i < answer.value.values().size(); ++i) {
    double& x = answer.value.values()[i];
    double& bound = answer.bound.values()[i];
    double& error = answer.own_error.values()[i];
    x *= factor;
    const bool is_empty = sums.absolute.values()[i] == 0 && x == 0;
    const double lost_in_row = of_row == nullptr ? 0 : of_row->values()[i / columns];
    of_kernel.lost = lost + lost_in_row;
    if (!std::isfinite(x)) {
      x = bound = error = std::numeric_limits<double>::quiet_NaN();
    } else if (lost_in_row == infinity) {
      error = is_empty
                  ? 0
                  : sum_error(own, of_reference, size, x, error, sums.own_absolute.values()[i]);
      bound = lost_in_row;
    } else if (is_empty) {
      bound = error = 0;
    } else {
      error = sum_error(own, of_reference, size, x, error, sums.own_absolute.values()[i]);
      bound = error + sum_error(c, of_kernel, size, x, bound, sums.absolute.values()[i]);
    }
  }
  return answer;
}

}  // namespace

Answer mapped_gradients(const Problem& problem, const Inputs& inputs, const BackwardRoundings& how,
                        const SavedRowOf& row_of) {
  const GradientConstants c = gradient_constants(how, problem);
  const GradientConstants own =
      gradient_constants(reference_roundings(problem), problem, fp64_arithmetic);
  GradientSums dq(query_shape(problem)), dk(key_shape(problem)), dv(value_shape(problem));
  Tensor<double> of_units(lse_shape(problem));
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const std::int64_t kv_head = problem.kv_head_of(h);
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto q = inputs[backward::q].row(b, h, n), d_o = inputs[backward::d_o].row(b, h, n);
        const auto row = row_of(b, h, n);
        DqRowInUnits in_units;
        for (const std::int64_t key : visible_keys_of(problem, b, n)) {
          const auto pair = gradient_pair(problem, inputs, b, h, n, key, row);
          auto errors = pair_errors(c, pair), mine = pair_errors(own, pair);
          const bool is_given = std::isfinite(pair.x) && std::isfinite(pair.g) &&
                                std::isfinite(pair.delta) && !std::isnan(pair.lse);
          if (!is_given) errors = mine = {0, 0};  // NaN is the answer
          const auto k = inputs[backward::k].row(b, kv_head, key);
          dq.add(b, h, n, pair.tau, errors.dscore, mine.dscore, k);
          dk.add(b, kv_head, key, pair.tau, errors.dscore, mine.dscore, q);
          dv.add(b, kv_head, key, pair.p, errors.weight, mine.weight, d_o);
          if (!how.sums_dq_in_units) continue;
          // Not finite in one column is NaN in all.
          in_units.dscores += is_given ? std::abs(pair.tau) + errors.dscore : infinity;
          in_units.largest_key = std::max(in_units.largest_key, largest_of(k));
          in_units.largest_value = std::max(in_units.largest_value,
                                            largest_of(inputs[backward::v].row(b, kv_head, key)));
        }
        if (!how.sums_dq_in_units) continue;
        for (const float x : d_o) in_units.gradient += std::abs(x);
        in_units.delta = std::abs(row.delta);
        in_units.delta_error = stored_error<double>(
            c.delta, row.delta, c.delta_relative * row.absolute_delta + c.delta_absolute);
        of_units.at(b, h, n, 0) = units_error(c, in_units);
      }
    }
  }
  const double scale = problem.scale, size = std::abs(scale);
  Answer answer;
  answer[backward::dq] = answer_of(
      std::move(dq), scale, size, c, {c.of_dq, c.dq_absolute, c.dq_sum_limit}, own,
      {own.of_dq, own.dq_absolute, own.dq_sum_limit}, how.sums_dq_in_units ? &of_units : nullptr);
  answer[backward::dk] =
      answer_of(std::move(dk), scale, size, c, {c.of_dk, c.dk_absolute, c.kv_part_limit}, own,
                {own.of_dk, own.dk_absolute, own.kv_part_limit});
  answer[backward::dv] =
      answer_of(std::move(dv), 1, 1, c, {c.of_dv, c.dv_absolute, c.kv_part_limit}, own,
                {own.of_dv, own.dv_absolute, own.kv_part_limit});
  return answer;
}

namespace {

Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
  return mapped_gradients(problem, inputs, roundings.as<BackwardRoundings>(),
                          [&](std::int64_t b, std::int64_t h, std::int64_t n) {
                            return given_row<double>(inputs, b, h, n);
                          });
}

/// Compares a row of the answer with the oracle's.
void compare_row(const OutputAnswer& answer, std::int64_t b, std::int64_t h, std::int64_t n,
                 const std::vector<Quad>& want, Certificate& certificate) {
  for (std::size_t c = 0; c < want.size(); ++c) {
    const auto column = static_cast<std::int64_t>(c);
    const double got = answer.value.at(b, h, n, column);
    const double allowed = answer.own_error.at(b, h, n, column);
    double ratio = 0;
    if (allowed == infinity) continue;
    if (!isfinite(want[c]) || std::isnan(got)) {
      ratio = !isfinite(want[c]) && std::isnan(got) ? 0 : infinity;
    } else if (Quad(got) != want[c]) {
      ratio = static_cast<double>(abs(Quad(Quad(got) - want[c]))) / allowed;
      if (!(ratio <= infinity)) ratio = infinity;
    }
    certificate.worst_ratio = std::max(certificate.worst_ratio, ratio);
  }
}

/// A row of queries, and a key of its KV head, at a time.
Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  Certificate certificate;
  if (problem.rows() == 0) return certificate;
  for (int i = 0; i < rows; ++i) {
    const auto draw = [&](std::uint64_t what, std::int64_t count) {
      return random_below(seed, certificate_stream, 4 * static_cast<std::uint64_t>(i) + what,
                          count);
    };
    const std::int64_t b = draw(0, problem.batch), h = draw(1, problem.query_heads);
    const std::int64_t n = draw(2, problem.query_len);
    const auto row_of = [&](std::int64_t head, std::int64_t query) {
      return given_row<Quad>(inputs, b, head, query);
    };
    compare_row(answer[backward::dq], b, h, n, oracle_dq(problem, inputs, b, h, n, row_of(h, n)),
                certificate);
    if (problem.key_len > 0) {
      const std::int64_t key = draw(3, problem.key_len), kv_head = problem.kv_head_of(h);
      const auto want = oracle_of_key<Quad>(problem, inputs, b, kv_head, key, row_of);
      compare_row(answer[backward::dk], b, kv_head, key, want.dk, certificate);
      compare_row(answer[backward::dv], b, kv_head, key, want.dv, certificate);
    }
    ++certificate.rows;
  }
  return certificate;
}

const ReferenceRegistration registration{
    {.operation = &backward_operation, .exact = exact, .certify = certify}};

}  // namespace
}  // namespace attest
