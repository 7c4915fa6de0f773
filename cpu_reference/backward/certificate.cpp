#include "cpu_reference/backward/certificate.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t certificate_stream = 0x67726164;  // "grad"

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

}  // namespace

Certificate certify_gradients(const Problem& problem, const Inputs& inputs, const Answer& answer,
                              std::uint64_t seed, int rows, const OracleRowOf& row_of,
                              bool with_keys) {
  Certificate certificate;
  if (problem.rows() == 0) return certificate;
  for (int i = 0; i < rows; ++i) {
    const auto draw = [&](std::uint64_t what, std::int64_t count) {
      return random_below(seed, certificate_stream, 4 * static_cast<std::uint64_t>(i) + what,
                          count);
    };
    const std::int64_t b = draw(0, problem.batch), h = draw(1, problem.query_heads);
    const std::int64_t n = draw(2, problem.query_len);
    compare_row(answer[backward::dq], b, h, n, oracle_dq(problem, inputs, b, h, n, row_of(b, h, n)),
                certificate);
    if (problem.key_len > 0 && with_keys) {
      const std::int64_t key = draw(3, problem.key_len), kv_head = problem.kv_head_of(h);
      const auto want = oracle_of_key<Quad>(
          problem, inputs, b, kv_head, key,
          [&](std::int64_t head, std::int64_t query) { return row_of(b, head, query); });
      compare_row(answer[backward::dk], b, kv_head, key, want.dk, certificate);
      compare_row(answer[backward::dv], b, kv_head, key, want.dv, certificate);
    }
    if (problem.sinks != Sinks::none && i == 0) {
      const Quad want = oracle_dsink<Quad>(
          problem, inputs, h,
          [&](std::int64_t entry, std::int64_t query) { return row_of(entry, h, query); });
      compare_row(answer[backward::d_sinks], 0, h, 0, {want}, certificate);
    }
    if (problem.bias != Bias::none && i == 0) {
      const Shape& shape = answer[backward::d_bias].value.shape();
      const std::int64_t entry = shape[0] == 1 ? 0 : b, head = shape[1] == 1 ? 0 : h;
      compare_row(answer[backward::d_bias], entry, head, n,
                  oracle_dbias<Quad>(problem, inputs, entry, head, n, row_of), certificate);
    }
    ++certificate.rows;
  }
  return certificate;
}

}  // namespace attest
