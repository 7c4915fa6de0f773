#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

constexpr std::uint64_t certificate_stream =
    0x636572746966;  // "certif": apart from the streams of input families

/// 34 decimal digits, 114 bits: the precision of Quad in half the time.
using Number = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<34, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;

/// |got - want| / allowed: 0 for equal values, infinities included, and for two NaN; infinity for
/// one NaN.
double error_ratio(double got, const Number& want, double allowed) {
  using boost::multiprecision::isfinite;
  using boost::multiprecision::isnan;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(got) || isnan(want)) return std::isnan(got) && isnan(want) ? 0 : infinity;
  if (!std::isfinite(got) || !isfinite(want)) return Number(got) == want ? 0 : infinity;
  const auto error = static_cast<double>(abs(Number(Number(got) - want)));
  if (error == 0) return 0;
  return error / allowed <= infinity ? error / allowed : infinity;
}

template <class Tensors>
Certificate certificate_of(const Problem& problem, const Tensors& inputs, const Answer& answer,
                           std::uint64_t seed, int rows) {
  Certificate certificate;
  const std::int64_t available = problem.rows();
  if (available == 0) return certificate;
  for (int i = 0; i < rows; ++i) {
    const std::int64_t row =
        random_below(seed, certificate_stream, static_cast<std::uint64_t>(i), available);
    const std::int64_t query = row % problem.query_len;
    const std::int64_t h = row / problem.query_len % problem.query_heads;
    const std::int64_t b = row / problem.query_len / problem.query_heads;
    const auto oracle = oracle_row<Number>(problem, inputs, b, h, query);
    for (std::int64_t c = 0; c < problem.output_dim(); ++c) {
      const double ratio = error_ratio(answer[forward::o].value.at(b, h, query, c),
                                       oracle.o[static_cast<std::size_t>(c)],
                                       answer[forward::o].own_error.at(b, h, query, c));
      certificate.worst_ratio = std::max(certificate.worst_ratio, ratio);
    }
    const double ratio = error_ratio(answer[forward::lse].value.at(b, h, query, 0), oracle.lse,
                                     answer[forward::lse].own_error.at(b, h, query, 0));
    certificate.worst_ratio = std::max(certificate.worst_ratio, ratio);
    ++certificate.rows;
  }
  return certificate;
}

}  // namespace

Certificate certify_rows(const Problem& problem, const Inputs& inputs, const Answer& answer,
                         std::uint64_t seed, int rows) {
  return certificate_of(problem, inputs, answer, seed, rows);
}
Certificate certify_rows(const Problem& problem, const RealInputs& inputs, const Answer& answer,
                         std::uint64_t seed, int rows) {
  return certificate_of(problem, inputs, answer, seed, rows);
}

}  // namespace attest
