// The exact answer of combine_operation, in double, and the bound of its kernels.
#include "cpu_reference/reference.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "core/attention/merge_roundings.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/combine.hpp"
#include "cpu_reference/combine/merge_bound.hpp"

namespace attest {
namespace {

using Quad = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_quad::backend_type,
                                           boost::multiprecision::et_off>;

constexpr std::uint64_t certificate_stream = 0x636f6d62;  // "comb"

/// The parts of one row: LSE_p [parts], O_p [parts, head_dim].
struct RowParts {
  std::vector<float> lse, o;
};

RowParts parts_of(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h,
                  std::int64_t n) {
  RowParts row;
  for (std::int64_t part = 0; part < problem.parts; ++part) {
    const std::int64_t at = part * problem.query_len + n;
    row.lse.push_back(inputs[combine::partial_lse].at(b, h, at, 0));
    const auto o = inputs[combine::partial_o].row(b, h, at);
    row.o.insert(row.o.end(), o.begin(), o.end());
  }
  return row;
}

/// Own errors of merged_row<double>. A weight e^-D, D <= 745 or the weight is 0, has a relative
/// error of at most (D + 2) 2^-53 < 2^-43, and what underflows of it is below 2^-1000; n terms are
/// added, divided once.
struct OwnErrors {
  double relative;  ///< of a term of the numerator, and of the sum of the weights
  double absolute;  ///< of O, per unit of the largest |o_p|
};

OwnErrors own_errors(std::int64_t parts) {
  const auto n = static_cast<double>(parts);
  return {.relative = 0x1p-41 + n * 0x1p-51, .absolute = n * 0x1p-1000};
}

void answer_row(const Problem& problem, const RowParts& parts, const MergeRoundings& how,
                std::int64_t b, std::int64_t h, std::int64_t n, Answer& answer) {
  const auto columns = static_cast<std::size_t>(problem.head_dim);
  const MergedRow<double> row = merged_row<double>(parts.lse, parts.o, columns);
  const MergeBound<double> bound = merge_bound<double>(how, parts.lse, parts.o, row);
  const bool is_empty = row.lse == -std::numeric_limits<double>::infinity();
  const OwnErrors own = own_errors(problem.parts);
  for (std::size_t c = 0; c < columns; ++c) {
    double absolute = 0, largest = 0;
    for (std::size_t part = 0; part < parts.lse.size() && !is_empty; ++part) {
      if (parts.lse[part] == -std::numeric_limits<float>::infinity()) continue;
      const double x = std::abs(double{parts.o[part * columns + c]});
      absolute += std::exp(parts.lse[part] - row.lse) * x;
      largest = std::max(largest, x);
    }
    // Twice: the absolute sum is computed, too. NaN where the row is.
    const double error = is_empty ? 0 : 2 * (own.relative * absolute + own.absolute * largest);
    const auto column = static_cast<std::int64_t>(c);
    answer[combine::o].value.at(b, h, n, column) = row.o[c];
    answer[combine::o].own_error.at(b, h, n, column) = std::isnan(row.o[c]) ? row.o[c] : error;
    answer[combine::o].bound.at(b, h, n, column) = bound.o[c] + error;
  }
  const double error = is_empty ? 0 : 2 * own.relative + 0x1p-51 * std::abs(row.lse);
  answer[combine::lse].value.at(b, h, n, 0) = row.lse;
  answer[combine::lse].own_error.at(b, h, n, 0) = error;
  answer[combine::lse].bound.at(b, h, n, 0) = bound.lse + error;
}

Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
  const auto& how = roundings.as<MergeRoundings>();
  const Tensor<double> o(combine_operation[combine::o].shape(problem)), lse(lse_shape(problem));
  Answer answer{OutputAnswer{o, o, o}, OutputAnswer{lse, lse, lse}};
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        answer_row(problem, parts_of(problem, inputs, b, h, n), how, b, h, n, answer);
      }
    }
  }
  return answer;
}

/// |got - want| / allowed: 0 for equal values and for two NaN, infinity for one NaN.
double error_ratio(double got, const Quad& want, double allowed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool is_nan = isnan(want);
  if (std::isnan(got) || is_nan) return std::isnan(got) && is_nan ? 0 : infinity;
  if (Quad(got) == want) return 0;
  if (!std::isfinite(got) || !isfinite(want)) return infinity;
  const auto ratio = static_cast<double>(abs(Quad(Quad(got) - want))) / allowed;
  return ratio <= infinity ? ratio : infinity;
}

Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  Certificate certificate;
  if (problem.rows() == 0) return certificate;
  for (int i = 0; i < rows; ++i) {
    const std::int64_t row =
        random_below(seed, certificate_stream, static_cast<std::uint64_t>(i), problem.rows());
    const std::int64_t n = row % problem.query_len;
    const std::int64_t h = row / problem.query_len % problem.query_heads;
    const std::int64_t b = row / problem.query_len / problem.query_heads;
    const RowParts parts = parts_of(problem, inputs, b, h, n);
    const auto want =
        merged_row<Quad>(parts.lse, parts.o, static_cast<std::size_t>(problem.head_dim));
    const auto raise = [&](OutputIndex output, std::int64_t c, const Quad& value) {
      certificate.worst_ratio =
          std::max(certificate.worst_ratio, error_ratio(answer[output].value.at(b, h, n, c), value,
                                                        answer[output].own_error.at(b, h, n, c)));
    };
    for (std::int64_t c = 0; c < problem.head_dim; ++c) {
      raise(combine::o, c, want.o[static_cast<std::size_t>(c)]);
    }
    raise(combine::lse, 0, want.lse);
    ++certificate.rows;
  }
  return certificate;
}

const ReferenceRegistration registration{
    {.operation = &combine_operation, .exact = exact, .certify = certify}};

}  // namespace
}  // namespace attest
