#pragma once

#include <cstdint>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor.hpp"

namespace attest {

/// The answer in double with what is known about its error. o tensors: [batch, query_heads,
/// query_len, output_dim()]; lse tensors: [batch, query_heads, query_len, 1], natural log.
struct Answer {
  Tensor<double> o, lse;
  /// |kernel - o| and |kernel - lse| are at most this for a correct kernel of the given plan; the
  /// own error is included. +infinity: nothing can be proven (a score or a sum can overflow). 0 for
  /// empty rows.
  Tensor<double> o_bound, lse_bound;
  /// |exact - o| and |exact - lse| are at most this.
  Tensor<double> o_own_error, lse_own_error;
};

/// O and LSE by blocks of rows in double, the bound of a kernel that performs `precision`, and the
/// reference's own error. Empty rows: O = 0, LSE = -inf, bounds 0. A NaN or infinity in q or in a
/// visible k makes the row's O and LSE NaN, one in a visible v makes its column of the row NaN;
/// errors and bounds are NaN there. Other rows are untouched. The result does not depend on
/// `threads` (>= 1). Throws InvalidInput if a tensor does not have the problem's shape.
[[nodiscard]] Answer exact_answer(const Problem& problem, const Inputs& inputs,
                                  const PrecisionPlan& precision, int threads = 1);

/// Throws InvalidInput if a tensor does not have the problem's shape.
void check_inputs(const Problem& problem, const Inputs& inputs);

/// Comparison of sampled rows with the 113-bit oracle.
struct Certificate {
  std::int64_t rows = 0;  ///< rows compared; fewer than asked for only when the problem has none
  double worst_o_ratio =
      0;  ///< worst |o - oracle| / o_own_error; infinity when one of them is NaN and the other not
  double worst_lse_ratio = 0;

  /// True only if every sampled value lies within its own-error estimate.
  [[nodiscard]] bool holds() const { return worst_o_ratio <= 1 && worst_lse_ratio <= 1; }
};

/// Recomputes `rows` rows drawn by (seed, index) with the 113-bit oracle.
[[nodiscard]] Certificate certify_rows(const Problem& problem, const Inputs& inputs,
                                       const Answer& answer, std::uint64_t seed, int rows);

}  // namespace attest
