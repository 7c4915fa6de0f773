#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu_reference/answer.hpp"
#include "cpu_reference/forward/error_bound.hpp"

namespace attest {

/// One row of dot products on its way to weights. All spans have one element per visible key.
struct RowBuffers {
  std::span<double> scores;    ///< in: q.k_j; out: p_j
  std::span<double> absolute;  ///< in: sum |q k_j|; out: p_j (e^H_j - 1), step 3 of error_bound.hpp
  std::span<double> weights, delta, log_error, phi;  ///< scratch
  /// Numbers that ALiBi and a bias add to the scores, and the sums of the magnitudes of both;
  /// empty: nothing is added. With a sink all spans have one element more, the last, which is the
  /// sink in `added` and its magnitude: a key whose dot product is 0.
  std::span<const double> added = {}, added_magnitude = {};
  std::span<double> before = {};  ///< scratch where something is added: scores before that
};

/// Errors of a row that all its columns need, once its weights are known.
struct RowErrors {
  RowSummary<double> kernel{}, own{};
  double lse = 0;
  double denominator = 1;  ///< of the sums of deviations
  /// Above 0: the sums of deviations belong to the kernel, and this share of them bounds those of
  /// the reference. 0: candidates (a) and (b) are useless for the kernel, so the sums are the
  /// reference's own.
  double own_share = 0;
  bool is_vacuous = false;  ///< a score can overflow in the kernel
};

/// Weights and errors of a row; `own` are the constants of the reference itself.
[[nodiscard]] RowErrors weigh_row(const BoundConstants& kernel, const BoundConstants& own,
                                  const Problem& problem, bool scale_is_folded,
                                  const RowBuffers& row);

/// sums[c] = sum_j weight[j] * |v[j][c] - o[c]|. v: [keys, columns], contiguous.
void sum_deviations(std::span<const double> weight, const double* v, std::span<const double> o,
                    std::span<double> sums);

/// A row of which every element of O is the same, and every error: one that sees no key, or NaN.
struct OneValueRow {
  double o = 0, lse = 0, error = 0;
};
/// Writes row (b, h, query) of O and LSE.
void fill_row(Answer& answer, std::int64_t b, std::int64_t h, std::int64_t query,
              const OneValueRow& row);
/// Writes the LSE of row (b, h, query), its bound and the reference's own error.
void set_lse(Answer& answer, std::int64_t b, std::int64_t h, std::int64_t query,
             const BoundConstants& kernel, const BoundConstants& own, const RowErrors& row);

}  // namespace attest
