#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/attention/merge_roundings.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/exponential_error.hpp"
#include "cpu_reference/rounding/relative_error.hpp"
#include "cpu_reference/rounding/stored_rounding.hpp"

namespace attest {

/// The exact merge of one row's partial results.
template <class Number>
struct MergedRow {
  std::vector<Number> o;  ///< sum_p exp(lse_p - LSE) o_p, one element a column
  Number lse;             ///< ln sum_p exp(lse_p), natural
};

/// The definition, for `lse` [parts] and `o` [parts, columns], o.size() == lse.size() * columns. A
/// part with lse -infinity weighs nothing, whatever its o holds; without another O is 0 and LSE
/// -infinity. A NaN or infinity in the row otherwise makes all of O and LSE NaN. Number: double,
/// whose own error is about parts times 2^-50 of sum_p exp(lse_p - LSE) |o_p|, or a multiprecision
/// type.
template <class Number>
[[nodiscard]] MergedRow<Number> merged_row(std::span<const float> lse, std::span<const float> o,
                                           std::size_t columns) {
  using std::exp;
  using std::log;
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  MergedRow<Number> row{std::vector<Number>(columns, Number(0)),
                        -std::numeric_limits<Number>::infinity()};
  bool is_finite = true;
  float maximum = nothing;
  for (std::size_t p = 0; p < lse.size(); ++p) {
    if (lse[p] == nothing) continue;
    is_finite = is_finite && std::isfinite(lse[p]) &&
                std::ranges::all_of(o.subspan(p * columns, columns),
                                    [](float x) { return std::isfinite(x); });
    maximum = std::max(maximum, lse[p]);
  }
  if (!is_finite) {
    row.lse = std::numeric_limits<Number>::quiet_NaN();
    row.o.assign(columns, row.lse);
    return row;
  }
  if (maximum == nothing) return row;
  Number sum = 0;
  for (std::size_t p = 0; p < lse.size(); ++p) {
    if (lse[p] == nothing) continue;
    const Number weight = exp(Number(Number(lse[p]) - Number(maximum)));
    sum += weight;
    for (std::size_t c = 0; c < columns; ++c) row.o[c] += weight * Number(o[p * columns + c]);
  }
  for (Number& element : row.o) element /= sum;
  row.lse = Number(maximum) + log(sum);
  return row;
}

/// Bound of the distance of a correct merge of partial results from the exact merge of the same
/// numbers.
///
/// Derivation, for one row with parts 1..n whose lse_p is not -infinity, and one column. Hats are
/// computed values, u = 2^-24, g(k) = k u / (1 - k u). lse_p and o_p are exact: what they owe to
/// the kernel that made them is not the merge's.
///
/// 1. Weights. The maximum M is one of the lse_p, so it is exact. With D_p = M - lse_p, a_p =
///    e^-D_p is computed as e^(-D_p + h_p), |h_p| <= H_p = eps + (u + argument_error) D_p
///    (ExponentialError), and H_p = 0 where D_p = 0 and exp(0) is 1. Underflow takes at most lambda
///    = 2^-126 from a weight. Flushed, a subnormal lse_p, M or difference moves D_p by as much
///    again, and the sum loses it too: 5 times 2^-126.
///
/// 2. The merge of exact sums of computed weights is O' = sum_p a_p e^h_p o_p / sum_p a_p e^h_p. As
///    sum_p a_p (o_p - O) = 0,
///      |O' - O| <= E1 = sum_p a_p (e^H_p - 1) |o_p - O| / F,   F = sum_p a_p e^-H_p.
///    |O'| <= |O| + E1 and |O'| <= W' = sum_p a_p e^H_p |o_p| / F.
///
/// 3. Sums. L_hat = (1 + z) sum_p a_p e^h_p with |z| <= Z = (1 + g(n - 1)) (1 + n lambda / F) - 1,
///    in any order. A term of the numerator passes through at most n roundings, its product and n -
///    1 sums: 1 + y with |y| <= Y = g(n), times 1 + d where the weights are divided, d the error of
///    a quotient. So
///      |N_hat / L_hat - O'| <= (Y W' + V + Z |O'|) / (1 - Z),
///    and a division at the end multiplies by 1 + d and adds d |O'|. V is what underflow loses:
///    lambda (1 + Y) sum_p |o_p| and the products, each 2^-150 or, flushed with their o_p and their
///    sums, 3 times 2^-126; all relative to F. Divided weights lose as much as a product does, once
///    more, and their products are relative to 1.
///
/// 4. Output. stored_error(): rounding to its format; fp32 is what the quotient or the chain was
///    rounded to.
///
/// 5. LSE = M + ln A, A = sum_p a_p. ln L_hat is off by at most ln(sum_p a_p e^H_p / A) - ln(1 - Z)
///    (as (sum p e^H) (sum p e^-H) >= 1 for p summing to 1), the logarithm by log_error |ln L_hat|,
///    and the addition by u |LSE|.
///
/// Infinite where a partial sum of the numerator, O or LSE can overflow.
template <class Number>
struct MergeBound {
  std::vector<Number> o;  ///< one element a column
  Number lse;
};

/// Values that all columns of a row share.
template <class Number>
struct MergeWeights {
  std::vector<std::size_t> parts;  ///< that weigh something
  std::vector<Number> low, high;   ///< a_p, a_p e^H_p
  Number total = 0;                ///< A
  Number floor = 0;                ///< F
  Number growth = 0;               ///< sum_p a_p (e^H_p - 1)
};

/// Steps 1 and 2.
template <class Number>
[[nodiscard]] MergeWeights<Number> merge_weights(const MergeRoundings& how,
                                                 std::span<const float> lse) {
  using std::exp;
  const ExponentialError error = exponential_error(how.exp, fp32_arithmetic);
  MergeWeights<Number> weights;
  const float maximum = *std::max_element(lse.begin(), lse.end());
  for (std::size_t p = 0; p < lse.size(); ++p) {
    if (lse[p] == -std::numeric_limits<float>::infinity()) continue;
    const Number distance = Number(maximum) - Number(lse[p]);
    const bool is_exact = lse[p] == maximum && how.exp.is_one_at_zero;
    const Number h =
        is_exact ? Number(0)
                 : Number(exponent_slack * (error.constant + error.per_difference * distance));
    weights.parts.push_back(p);
    weights.low.push_back(exp(Number(-distance)));
    weights.high.push_back(exp(Number(h - distance)));
    weights.total += weights.low.back();
    weights.floor += exp(Number(-h - distance));
    weights.growth += weights.high.back() - weights.low.back();
  }
  return weights;
}

/// Bounds of O and LSE of a merge that performs `how`, for `row` = merged_row(lse, o, columns): 0
/// where no part weighs anything, NaN where a part that does holds a NaN or an infinity. Number as
/// there.
template <class Number>
[[nodiscard]] MergeBound<Number> merge_bound(const MergeRoundings& how, std::span<const float> lse,
                                             std::span<const float> o,
                                             const MergedRow<Number>& row) {
  using std::abs;
  using std::exp;
  using std::log;
  const Number infinity = std::numeric_limits<double>::infinity();
  const std::size_t columns = row.o.size();
  MergeBound<Number> bound{std::vector<Number>(columns, Number(0)), Number(0)};
  if (row.lse == -infinity) return bound;
  if (!(abs(row.lse) < infinity)) {
    bound.lse = std::numeric_limits<double>::quiet_NaN();
    bound.o.assign(columns, bound.lse);
    return bound;
  }
  const MergeWeights<Number> weights = merge_weights<Number>(how, lse);
  const double u = fp32_arithmetic.unit_roundoff;
  const double n = static_cast<double>(weights.parts.size());
  const Underflow underflow = underflow_of(fp32_arithmetic, how.flushes_subnormals);
  const double division = declared_error(how.division_error, fp32_arithmetic);

  // Step 3.
  const double lambda = (how.flushes_subnormals ? 5 : 1) * fp32_arithmetic.min_normal;
  const Number z = (1 + Number(chain_error(n - 1, u))) * (1 + n * lambda / weights.floor) - 1;
  bound.lse = infinity;
  bound.o.assign(columns, infinity);
  if (!(z < 1)) return bound;
  const double of_weights = how.divides_weights ? division : 0;
  const double of_quotient = how.divides_weights ? 0 : division;
  const double y = (1 + chain_error(n, u)) * (1 + of_weights) - 1;
  const double per_weight = lambda + (how.divides_weights ? underflow.of_result : 0);
  const double of_products = (how.flushes_subnormals ? 3 : 1) * n * underflow.of_result;
  const Number relative_to =
      how.divides_weights ? std::min<Number>(1, weights.floor) : weights.floor;
  // A subnormal o_p is lost under its weight, which is this at most.
  const Number largest_weight = exp(Number(exponential_error(how.exp, fp32_arithmetic).constant));

  const ElementFormat& format = format_of(how.output);
  StoredRounding output{0, underflow.of_result / 2, fp32_arithmetic.max_finite};
  if (format.unit_roundoff > u) output = stored_rounding(format);
  output.absolute += underflow.results_per_term * underflow.of_result;

  for (std::size_t c = 0; c < columns; ++c) {
    Number deviation = 0, absolute = 0, plain = 0;
    for (std::size_t i = 0; i < weights.parts.size(); ++i) {
      const Number x = o[weights.parts[i] * columns + c];
      deviation += (weights.high[i] - weights.low[i]) * abs(Number(x - row.o[c]));
      absolute += weights.high[i] * abs(x);
      plain += abs(x);
    }
    const Number e1 = deviation / weights.floor;
    const Number w = absolute / weights.floor;
    const Number merged = std::min<Number>(abs(row.o[c]) + e1, w);
    const Number largest_sum = (how.divides_weights ? Number(w / (1 - z)) : absolute) * (1 + y);
    if (!(evaluation_slack * largest_sum < fp32_arithmetic.max_finite)) continue;
    const Number lost = (per_weight * (1 + y) * plain + largest_weight * of_products) / relative_to;
    const Number sums = (y * w + lost + z * merged) / (1 - z);
    const Number core = evaluation_slack * (e1 + sums * (1 + of_quotient) + of_quotient * merged);
    bound.o[c] = stored_error<Number>(output, row.o[c], core);
  }

  // Step 5.
  const double log_error =
      log_sum_error(how.log_error, LseForm::natural, fp32_arithmetic).logarithm;
  const Number of_sum = log(Number(1 + weights.growth / weights.total)) - log(Number(1 - z));
  const Number before = of_sum + log_error * (log(weights.total) + of_sum);
  const StoredRounding of_lse{u, underflow.results_per_term * underflow.of_result,
                              fp32_arithmetic.max_finite};
  bound.lse = stored_error<Number>(of_lse, row.lse, Number(evaluation_slack * before));
  return bound;
}

}  // namespace attest
