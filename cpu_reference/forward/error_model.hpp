#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {

/// Model of the errors of a correct kernel, to first order in its roundings. The bound adds
/// up the worst of every rounding and must be kept always; this model takes the roundings for
/// independent and uniform, says how large their sum usually is, and so sees small errors that all
/// point the same way.
///
/// One rounding to nearest of x errs uniformly within half an ulp. Over significands m in [1, 2)
/// that are spread evenly in the logarithm, E 1/m^2 = 0.541 and E 1/m = 0.721: variance
/// 0.541 u^2 x^2 / 3, mean 0. Truncation has the same variance about its mean, 0.721 u |x| towards
/// zero: a drift. Drifts are allowed for, never estimated: a statistic must exceed what all drifts
/// together could add.
///
/// Log weight of key j (t_j^2, its variance), for score s_j of d products x_i with squares X_j:
///   a chain of k roundings of partial sums S_i: sum S_i^2 is about k (s_j^2 / 3 + X_j / 6), the
///   mean of a walk that ends in s_j (a chain over keys may start with its largest term: k s^2); k
///   is d for fused multiply-adds, ceil(d / b) for a tensor core, which also cuts b + 1 terms a
///   step at 2^-F of the largest; scaling; the argument, in proportion to max s - s_j; the
///   exponential.
/// Values and factors with a trend walk another way: their partial sums are far from S at first and
/// come back. So sum S_i^2 is also formed from the terms themselves, in their order and for keys in
/// the reverse order too, and the larger figure counts (error_paths.hpp).
///
/// O_c errs by sum_j p_j t_j (v_jc - O_c). P's rounding enters without the centre when the
/// normaliser adds weights before they are rounded. The sum of P V is a chain again; the
/// normaliser, the rescales and the division have one relative error for the whole row. A rescale
/// by a maximum that rose errs alike for all keys before it, and the weight of a split for all keys
/// of the split: each moves O by its error times the sum of p_j (v_jc - O_c) over those keys. Parts
/// that are weighed by e^LSE_p err by the rounding u |LSE_p| as well.
///
/// A weight below an ulp of the sum that it is added to is lost, or counted twice: an error of one
/// sign, and so a drift of as much as all such weights have. Among thousands of keys it shows.
///
/// Of an exponential that is not scattered (ExpMethod) nothing is known but its limit. That is no
/// variance then but a drift of every weight.
///
/// The columns of a row share t_j, and so do sums over columns: along any direction y the variance
/// of sum_c y_c err_c is sum_j p_j^2 t_j^2 (sum_c y_c (v_jc - O_c))^2 plus what each column has for
/// itself. Two directions are kept: O itself, along which a wrong normaliser or truncated weights
/// move the answer, and dO / d ln(scale), along which a wrong scale does.
struct ErrorDirection {
  std::vector<double> along;  ///< y_c, weighted by 1 / variance of the column
  double variance = 0;        ///< of sum_c y_c err_c
  double drift = 0;           ///< |mean| of that sum is at most this
};

/// The model of one row of O and LSE.
struct RowErrorModel {
  std::int64_t b = 0, h = 0, n = 0;
  std::vector<double> o_sd;     ///< by column; 0: exact, or nothing is claimed
  std::vector<double> o_drift;  ///< |mean error| is at most this
  ErrorDirection gain;          ///< along O
  ErrorDirection temperature;   ///< along dO / d ln(scale)
  /// Sum over keys of (what the key's weight adds to sum_c (err_c / sd_c)^2 on average)^2. Few keys
  /// move all columns together: that sum then spreads by 2 (columns + shared_squares), not by 2
  /// columns.
  double shared_squares = 0;
  /// Variance along O over what independent columns would have: 1 where they are, head_dim where V
  /// has one column in essence.
  double column_correlation = 1;
  double lse_sd = 0, lse_drift = 0;
};

/// Rows that the model claims anything about. The rest is left out, whatever the kernel did there.
struct ErrorModelScope {
  /// Least 1 / sum p^2: fewer weights do not average, and a weight of exactly 1 has no error.
  double least_effective_keys = 8;
  /// Share of the weight that tied keys may hold: equal scores are rounded alike, and their errors
  /// add up.
  double largest_tied_share = 0.25;
  /// Spread (standard deviation) of the scores, in roundoffs of P: less, and all weights are
  /// rounded from the same side.
  double least_score_spread = 4;
  /// Largest |score| over their spread: past it the partial sums of all keys run through the same
  /// binades, and the roundings of the common part repeat from key to key.
  double largest_common_score = 32;
  /// Largest standard deviation of a log weight: past it first order is not enough.
  double largest_log_error = 1.0 / 16;
  /// Rows are taken at even distances when there are more.
  std::int64_t largest_row_count = 128;
};

/// Models of rows in scope, none of which repeats the query of another row on the same keys. A row
/// in which a bound is infinite or an input is not finite is out of scope. `answer` is that of
/// exact_answer for the same problem, inputs and precision.
[[nodiscard]] std::vector<RowErrorModel> model_errors(const Problem& problem, const Inputs& inputs,
                                                      const PrecisionPlan& precision,
                                                      const Answer& answer,
                                                      const ErrorModelScope& scope = {});

}  // namespace attest
