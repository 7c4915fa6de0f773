#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/problem.hpp"
#include "core/base/host_device.hpp"
#include "cpu_reference/rounding/arithmetic.hpp"
#include "cpu_reference/rounding/relative_error.hpp"
#include "cpu_reference/rounding/stored_rounding.hpp"

namespace attest {

/// Bound of the distance of a correct kernel's dQ, dK, dV, dsinks and dbias from the exact map of
/// what it was given (core/operations/backward.hpp), computed before it runs from the roundings
/// that it names.
///
/// Derivation, in the notation of forward/error_bound.hpp: u = 2^-24, g(k) = k u / (1 - k u), kappa
/// the error of a sum of products per absolute sum. Row i, key j; A = |scale| sum |q k|, G = sum
/// |dO v|, Omega_i = sum |dO O| + |dLSE_i|, tau = dS = p r chi. Hats are computed values.
///
/// 1. Scores: |s_hat - s| <= delta, as there, a softcap included, and what ALiBi and a bias add
///    (step 14).
///
/// 2. Weights. LSE is given, so that no sum of weights makes up for an error of a score: p_hat =
///    p e^h with |h| <= H = delta + eps + (u + argument_error) |s - LSE|, plus 2 u (|s| + |LSE|)
///    where both are multiplied by log2 e apart (LseForm::log2): these two do not cancel. A weight
///    below 2^-126 may become 0. LSE that is rounded to lse_format first adds u_L |LSE| + eta_L to
///    H, and to |s - LSE| and |LSE| where they stand in it.
///
/// 3. Products: |g_hat - g| <= gamma = kappa(columns of V) G, g = dO_i.v_j.
///
/// 4. |delta_hat_i - delta_i| <= d_i = g(delta_chain) Omega_i, with a dLSE, which is one term more,
///    g(delta_chain + 1) Omega_i, and where delta is rounded to
///    delta_format u_D (|delta_i| + d_i) + eta_D more.
///
/// 5. Slope of a softcap, chi = 1 - t^2 with t = tanh(x / c). t^2 has a slope of at most 0.77, so
///    |chi_hat - chi| <= psi = 0.77 delta_x / c + 2 softcap_error + 4 u.
///
/// 6. dS = p r chi in fp32, one subtraction and two products:
///      |dS_hat - tau| <= e = p {phi |r| chi + e^H [(gamma + d) chi + psi (|r| + gamma + d)]} (1 +
///      g(3)) + g(3) p e^H |r| chi + 3 2^-126 max(1, |r| + gamma + d),   phi = e^H - 1.
///    Where dS is formed from P as it is stored (dscore_of_rounded_weights), e^H is e^H (1 + u_P),
///    and 2 eta_P (|r| + gamma + d) is added.
///
/// 7. Stored for the products, with roundoff u_S and half a smallest subnormal eta_S of dS's
/// format,
///    u_P and eta_P of P's:
///      B = e (1 + u_S) + u_S |tau| + eta_S,   C = p (e^H (1 + u_P) - 1) + eta_P + 2^-126.
///    With the scale in what is stored (scales_dscore) it is |scale| tau that eta_S is half a
///    subnormal of: eta_S / |scale| stands for it, and so for the largest number.
///
/// 8. Sums over the rows of a key, kv_parts of them added in fp32, kappa' = kappa(kv_chain) and the
///    kv_parts - 1 additions composed:
///      |dV_hat - dV|_jc <= sum_i [C + kappa' (p + C)] |dO_ic|,
///      |dK_hat - dK|_jc <= |scale| sum_i [B + kappa'' (|tau| + B)] |q_ic|, kappa'' with u more for
///    the scale. Over the keys of a row alike with dq_chain and dq_parts. Parts that are stored
///    before they are added (kv_part_format) cost a rounding each: a factor 1 + u of that format
///    in kappa', and half its smallest subnormal a part. A sum that is rounded each time a part was
///    added (dq_sum_format): g(parts) of u + u of that format, and half its smallest subnormal a
///    part. Parts of dQ that are stored before they are added (dq_part_format) cost what those of
///    dK do.
///
///    Parts of dQ that are added as integers (sums_dq_in_units, core/attention/dq_units.hpp) cost
///    half a unit each, their additions nothing, their sum, taken to fp32, u. The unit is that of
///    the row's size = (sum |dO_ic| max |v| + |delta_i|) max |k|, of which a kernel knows its own
///    delta, and which it forms in fp32: at most that of size + d max |k|, at least that of size -
///    d max |k|, each with dq_size_slack. A part's numbers are at most (1 + kappa') max |k| times
///    its keys' sum of |tau| + B, so the row is not NaN if that of all keys, and a step for each
///    part, stay within the range in the smaller unit; otherwise nothing can be proven of it.
///
/// 9. Products and sums below 2^-126 lose as much as underflow_of() says, one a term.
///
/// 10. The rounding to the output's format.
///
/// 11. Sinks. A row's term of dsink is p delta_i with p = e^(sink - LSE_i), a weight whose score is
/// given: |h| <= H with delta = 0 in step 2. With d of step 4 and one product,
///      |term_hat - term| <= e = p {(e^H - 1) |delta_i| + e^H d} (1 + u) + u p |delta_i| + 2^-126
///    (2 + |delta_i| + d).
///    dsink is the sum of the terms of n rows in fp32, in whatever order, so that none of them
///    passes through more than n additions: |dsink_hat - dsink| <= sum e + g(n) (p |delta_i| + e).
///
/// 12. A bias. Its terms are p r, the dS of step 6 with chi = 1 and psi = 0, in fp32 as they are
///    before anything is stored: that step's e. dbias is the sum of the terms of all entries and
///    query heads that share the element, m at most, in fp32 and in any order: |dbias_hat - dbias|
///    <= sum e + g(m - 1) (p |r| + e).
///
/// 13. Dropout. d = 0 or 1 / (1 - dropout) is formed in fp32 with two roundings, and multiplies P
///    and g with a third: with k = g(3) the weight of dV, d p, errs by d [C' (1 + k) + k p] +
///    2^-126 before it is stored, C' = p (e^H - 1) + 2^-126 being P's error, and d g by d [gamma +
///    k (|g| + gamma)] + 2^-126, which stands for gamma in r. Where d = 0 both are 0 without an
///    error.
///
/// Infinite where a weight or dS can exceed its format, or a sum fp32: nothing can be proven then.
/// The same formulas with u = 2^-53 give the error of the reference in double.
struct GradientConstants {
  double score_relative, score_rounding, score_absolute;  ///< delta per A, per |s|, and constant
  double added;  ///< delta per |t| + |a|, a being what ALiBi and a bias add to t; 0 without them
  double exponent, argument, sizes;           ///< H: constant, per |s - LSE|, per |s| + |LSE|
  StoredRounding lse;                         ///< u_L, eta_L
  double product_relative, product_absolute;  ///< gamma per G, and constant
  StoredRounding product;                  ///< of dO V^T as it is stored; no error where it is not
  double delta_relative, delta_absolute;   ///< d per Omega, and constant
  StoredRounding delta;                    ///< u_D, eta_D
  double slope_per_score, slope_absolute;  ///< psi per delta_x, and constant; 0 without a softcap
  double dscore_chain;                     ///< g(3)
  double rounding;                         ///< u
  double kept;                             ///< k of step 13; 0 without dropout
  double of_dsinks;                        ///< g(n) of step 11
  double of_dbias;                         ///< g(m - 1) of step 12
  StoredRounding weight, dscore;           ///< u_P, u_S; all 0 where they stay in the arithmetic
  bool dscore_of_rounded_weights;
  double of_dq, of_dk, of_dv;                    ///< kappa', kappa''
  double kv_part_limit;                          ///< what a part of dK or dV must stay below
  double dq_sum_limit;                           ///< what dQ must stay below
  double dq_parts_in_units;                      ///< 0: they are added in fp32
  double dq_absolute, dk_absolute, dv_absolute;  ///< step 9
  StoredRounding output;
  double tiny;  ///< 2^-126
  double max_finite;
};

[[nodiscard]] GradientConstants gradient_constants(const BackwardRoundings& how,
                                                   const Problem& problem,
                                                   const Arithmetic& arithmetic = fp32_arithmetic);

/// Roundings of the double reference itself; for constants with fp64_arithmetic.
[[nodiscard]] BackwardRoundings reference_roundings(const Problem& problem);

/// Absolute errors of the LSE and the delta that a row's pairs are formed with, where the kernel,
/// or the reference, forms these itself; 0 where they are given.
template <class Number>
struct SavedErrors {
  Number lse, delta;
};

/// Values that all pairs of a row share: LSE, and delta = dO.O - dLSE with its absolute sum.
template <class Number>
struct SavedRow {
  Number lse, delta, absolute_delta;
  SavedErrors<Number> of_kernel{}, of_reference{};
};

/// One visible pair of a query row and a key. Number: double or a multiprecision type.
template <class Number>
struct GradientPair {
  Number x, absolute_x;          ///< scale q.k, A
  Number added, absolute_added;  ///< to the capped score, by ALiBi and a bias; absolute sum
  Number s, chi;                 ///< score, slope of the softcap
  Number lse;
  Number g, absolute_g;          ///< dO.v, G
  Number delta, absolute_delta;  ///< dO.O - dLSE, Omega
  Number kept = 1;               ///< d of dropout
  Number p, r, tau;
  SavedErrors<Number> of_kernel, of_reference;
};

/// H of step 2, of a weight e^(s - LSE) whose score errs by `of_score`.
template <class Number>
[[nodiscard]] ATTEST_HOST_DEVICE Number exponent_error(const GradientConstants& c, const Number& s,
                                                       const Number& lse, const Number& of_score,
                                                       const Number& of_saved_lse) {
  using std::abs;
  const Number of_lse = stored_error<Number>(c.lse, lse, 0);
  const Number distance = abs(Number(s - lse)) + of_lse + of_saved_lse;
  return of_score + exponent_slack * (c.exponent + c.argument * distance + of_lse + of_saved_lse +
                                      c.sizes * (abs(s) + abs(lse) + of_lse + of_saved_lse));
}
/// H above which nothing is claimed: its e^H is beyond fp32, and so is any use of the bound.
inline constexpr double largest_exponent = 80;

/// Step 4: error of a row's delta.
template <class Number>
[[nodiscard]] ATTEST_HOST_DEVICE Number delta_error(const GradientConstants& c, const Number& delta,
                                                    const Number& absolute_delta,
                                                    const Number& of_saved_delta) {
  return stored_error<Number>(
      c.delta, delta,
      Number(c.delta_relative * absolute_delta + c.delta_absolute + of_saved_delta));
}

/// Steps 6, 7 and 12: errors of P and dS as they enter the sums. Infinite where nothing can be
/// proven. Errors of a LSE and a delta that are not given add to H and to d.
template <class Number>
struct PairErrors {
  Number weight;  ///< C
  Number dscore;  ///< B
  Number bias;    ///< e of step 12
};

template <class Number>
[[nodiscard]] ATTEST_HOST_DEVICE PairErrors<Number> pair_errors(const GradientConstants& c,
                                                                const GradientPair<Number>& pair,
                                                                const SavedErrors<Number>& saved) {
  using std::abs;
  using std::exp;
  const Number infinity = std::numeric_limits<double>::infinity();
  const Number score = exponent_slack * (c.score_relative * pair.absolute_x +
                                         c.score_rounding * abs(pair.x) + c.score_absolute);
  const Number terms = abs(Number(pair.s - pair.added)) + pair.absolute_added;
  const Number of_score = score + exponent_slack * c.added * terms;
  const Number h = exponent_error(c, pair.s, pair.lse, of_score, saved.lse);
  if (!(pair.absolute_x + pair.absolute_added + of_score < c.max_finite) ||
      !(h < largest_exponent)) {
    return {infinity, infinity, infinity};
  }
  Number factor = exp(h);
  const Number of_weight = factor - 1;
  if (c.dscore_of_rounded_weights) factor *= 1 + c.weight.relative;
  const Number phi = factor - 1;
  const double of_dropout = c.kept > 0 && pair.kept != 0 ? c.tiny : 0;
  const Number of_p = Number(pair.p * of_weight + c.tiny);
  const Number of_kept = pair.kept * (of_p * (1 + c.kept) + c.kept * pair.p) + of_dropout;
  // What overflows is no 0 after it falls.
  const bool is_in_range = c.kept == 0 || pair.p * factor < c.max_finite;
  const Number weight =
      is_in_range ? stored_error<Number>(c.weight, Number(pair.p * pair.kept), of_kept) : infinity;
  if (c.dscore_of_rounded_weights && weight == infinity) return {infinity, infinity, infinity};
  const Number of_delta = delta_error(c, pair.delta, pair.absolute_delta, saved.delta);
  const Number of_product = stored_error<Number>(
      c.product, pair.g, Number(c.product_relative * pair.absolute_g + c.product_absolute));
  if (of_delta == infinity || of_product == infinity) return {weight, infinity, infinity};
  const Number r = abs(pair.r);
  const Number of_kept_product =
      pair.kept * (of_product + c.kept * (abs(pair.g) + of_product)) + of_dropout;
  const Number of_r = of_kept_product + of_delta;
  const Number psi = c.slope_per_score * score + c.slope_absolute;
  const auto of_term = [&](const Number& chi, const Number& of_chi) {
    return Number(pair.p * (phi * r * chi + factor * (of_r * chi + of_chi * (r + of_r))) *
                      (1 + c.dscore_chain) +
                  c.dscore_chain * pair.p * factor * r * chi +
                  3 * c.tiny * std::max<Number>(1, r + of_r) +
                  (c.dscore_of_rounded_weights ? 2 * c.weight.absolute : 0) * (r + of_r));
  };
  return {weight, stored_error<Number>(c.dscore, pair.tau, of_term(pair.chi, psi)), of_term(1, 0)};
}

/// Step 11: e of a row's term of dsink, whose sink is finite. Infinite where nothing can be proven.
template <class Number>
[[nodiscard]] Number sink_term_error(const GradientConstants& c, double sink,
                                     const SavedRow<Number>& row,
                                     const SavedErrors<Number>& saved) {
  using std::abs;
  using std::exp;
  const Number infinity = std::numeric_limits<double>::infinity();
  const Number p = exp(Number(sink - row.lse)), size = abs(row.delta);
  const Number h = exponent_error<Number>(c, sink, row.lse, 0, saved.lse);
  if (!(h < largest_exponent)) return infinity;
  const Number factor = exp(h);
  if (!(p * factor < c.max_finite)) return infinity;
  const Number d = delta_error(c, row.delta, row.absolute_delta, saved.delta);
  return p * ((factor - 1) * size + factor * d) * (1 + c.rounding) + c.rounding * p * size +
         c.tiny * (2 + size + d);
}

/// Relative error within which 2^12 additions in fp32 stay.
inline constexpr double dq_size_slack = 0x1p-12;

/// A row of dQ whose parts are added as integers (step 8).
struct DqRowInUnits {
  double gradient = 0;                        ///< sum_c |dO_ic|
  double delta = 0, delta_error = 0;          ///< |delta_i|, d_i
  double largest_key = 0, largest_value = 0;  ///< max |k|, max |v| of the keys that it sees
  double dscores = 0;                         ///< sum of |tau| + B over them
};
/// Absolute error of a row of dQ from rounding its parts to units, before the scale; infinite where
/// the row may be NaN.
[[nodiscard]] double units_error(const GradientConstants& c, const DqRowInUnits& row);

/// Constants that steps 8 and 9 need of one of the three sums.
struct SumBound {
  double chain;  ///< kappa' or kappa''
  double lost;   ///< to underflow, before `factor` multiplies
  double limit;  ///< of what the sum is stored in, after `factor` has multiplied
};

/// Steps 8 to 10, for a value x = factor times a sum: `errors` is the sum of the errors of its
/// terms times what they are multiplied by, `absolute` that of their sizes and errors; `factor` is
/// 1 or |scale|.
template <class Number>
[[nodiscard]] ATTEST_HOST_DEVICE Number sum_error(const GradientConstants& c, const SumBound& of,
                                                  double factor, const Number& x,
                                                  const Number& errors, const Number& absolute) {
  const Number infinity = std::numeric_limits<double>::infinity();
  const Number largest = evaluation_slack * (1 + of.chain) * absolute;
  if (!(largest * std::max(1.0, factor) < c.max_finite) || !(largest * factor < of.limit)) {
    return infinity;
  }
  const Number core = evaluation_slack *
                      (factor * (errors + of.chain * absolute + of.lost) + c.tiny * (factor != 1));
  return stored_error<Number>(c.output, x, core);
}

}  // namespace attest
