#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/host_device.hpp"
#include "cpu_reference/forward/bound_constants.hpp"
#include "cpu_reference/rounding/relative_error.hpp"
#include "cpu_reference/rounding/stored_rounding.hpp"

namespace attest {

/// Bound of a correct kernel's distance from the exact answer: an upper bound computed before the
/// kernel runs, from the roundings its PrecisionPlan names and from quantities of the exact answer.
///
/// Derivation, for one query row that sees keys 1..n and one output column. Hats are computed
/// values, u = 2^-24, g(k) = k u / (1 - k u) bounds k roundings in a row.
///
/// 1. Scores. s_j = scale q.k_j, A_j = |scale| sum_i |q_i k_ji|. The dot product of d terms errs by
///    at most kappa(d) A_j. fp32: kappa(d) = g(d) in any order of summation, as no term passes
///    through more than d roundings. A tensor core aligns b products and the accumulator to the
///    largest of them, cuts these b + 1 terms at F fraction bits and cuts the sum to fp32; a step
///    costs e = (b + 1) 2^-F + 2^-23 of the absolute sum so far, and k = ceil(d / b) steps cost
///    k e / (1 - k e). Scaling afterwards adds u |s_hat_j|, a pre-scaled q adds u A_j. Together:
///    |s_hat_j - s_j| <= delta_j.
///    A softcap c turns s_j into c tanh(s_j / c), whose slope is at most 1, so delta_j stays; the
///    computed tanh adds softcap_error c. What scaling rounds is relative to the score before,
///    which only A_j bounds. From here on s_j is the capped score.
///
/// 2. Weights. The kernel forms e^(s_hat_j - m_b) for the maximum m_b so far, then multiplies by
///    e^(m_b - m_b+1) and so on. Each difference is rounded (u times its size), each exp errs by
///    eps and by a part that grows with its argument. The sizes telescope:
///      |s_hat_j - m_b| + |m_b - m_b+1| + ... = m_hat - s_hat_j
///                                           <= D_j := max_i (s_i + delta_i) - s_j + delta_j.
///    So the final weights are e^(s_j - m_hat + h_j) with
///      |h_j| <= H_j := delta_j + (u + argument_error) D_j + E eps.
///    E counts the exps on the way. Where exp(0) = 1 exactly only strict moves count: E <= n - 1.
///    Otherwise every rescale counts, and the largest weight is within e^+-(E eps) of 1.
///    A kernel that scales inside the exponent, e^fma(x_j, c, -fl(m_b c)), keeps the rounding of
///    m_b c, at most g = u max|s_j|: H_j grows by it and E by one, and the largest weight is not 1
///    but within e^+-g.
///
/// 3. Softmax. With exact weights p_j, sum_j p_j (v_j - O) = 0, so exact arithmetic on the computed
///    weights would give
///      O' - O = sum_j p_j (e^h_j - 1) (v_j - O) / sum_j p_j e^h_j.
///    (a) |O' - O| <= sum_j p_j (e^H_j - 1) |v_j - O| / sum_j p_j e^-H_j.
///    (b) A constant added to all h_j changes nothing. Add -h_t for one key t: its own term
///        vanishes, H_j + H_t replaces H_j in the others. Far smaller if t holds most of the
///        weight.
///    (c) O' is a convex combination of the v_j: |O' - O| <= max_j |v_j - O|, whatever the h_j.
///    E1 is the least of (c) and the better of (a) and (b). p_j e^H_j is formed as e^(s_j - LSE +
///    H_j), so that a large H_j does no harm to a key of far smaller weight.
///
/// 4. Sums. p' = p e^h / sum p e^h. Numerator terms carry 1 + y_j with |y_j| <= Y, the normaliser
///    1 + z with |z| <= Z:
///      |O_hat - O'| <= (Y W' + Z |O'|) / (1 - Z), and the division adds its own relative error.
///    Y: kappa(n), the products with rescaling factors, extra divisions, and the rounding of P,
///    unless l adds the rounded P: numerator and normaliser then share it, and it belongs to H_j.
///    Z: g(h) for a chain of h additions, and the products with rescaling factors.
///    W' = sum p'_j |v_j| is at most max_j |v_j| and at most W + E1 + 2 W G, where G is the
///    quotient of (a) or (b) without the factor |v_j - O|. |O'| is at most W' and at most |O| + E1.
///    A kernel that knows the maximum beforehand but built l online evaluates each weight twice:
///    the two differ by at most x_j = 2 (H_j - delta_j) in the exponent, and Z grows by sum p'_j
///    (e^x_j - 1).
///
/// 5. Underflow. A weight loses up to 2^-126 at each exp (flushed to zero), and half a subnormal of
///    P's format; a product loses up to 2^-150. All relative to a normaliser of at least
///    max(1, e^(LSE - max_i (s_i + delta_i)) sum_j p_j e^-H_j).
///
/// 6. Output. Rounding to its format: u_out |O_hat| and half the smallest subnormal.
///
/// 7. LSE = m + ln L. The weights shift it by |ln sum_j p_j e^h_j| <= ln sum_j p_j e^H_j. The
///    normaliser adds -ln(1 - Z), the logarithm log_error ln l, the last addition u |LSE|.
///
///    A maximum kept in units of log2 (LseForm::log2) carries the errors of fl(log2 e) and of the
///    scale times it, and fl(ln 2) and its product bring as many again: 4 u |m|, where |m| <= |LSE|
///    + ln n up to the errors above. ln 2 times fl(m + log2 l) has two roundings more of ln l
///    instead, which are added to log_error.
///
/// 8. Splits, each with its maximum m_p, sum l_p and numerator, steps 2 and 4 holding for each.
///    Merge::sums and normalised_sums weigh them by e^(m_p - M): one more exp, and what the
///    products and sums round. Merge::lse_pairs forms LSE_p = m_p + ln l_hat_p + e_p and weighs
///    O_p by e^(LSE_p - M + t_p), M the largest LSE_p. l_hat_p cancels between O_p and that weight,
///    so its keys keep their weights but for the factor e^(e_p + t_p), the same in numerator and
///    normaliser: H_j grows by
///      |e_p| <= u |LSE_p| + log_error ln l_p (and 4 u |m_p| or u |m_p|, as the LSE is formed),
///      |t_p| <= eps + (u + argument_error) |LSE_p - M|,   |LSE_p - M| <= (m - m_p) + ln n.
///    m - m_p is the rest of the telescope of step 2, so only ln n is new. The normaliser of the
///    merge rounds S products and sums, the numerator as many, and O_p once in its format. E counts
///    this exp whether or not the maximum moves. Losses at the merge are relative to a normaliser
///    of 1 at least, and the largest weight there is exactly 1.
///
/// 9. Kernels that flush subnormal results lose up to 2^-126 instead of 2^-150, at products and,
///    unlike others, at sums: two a term (and one where V itself is flushed).
///
/// 10. Factors in parts (Parts). With rest rho_k |x| + phi of a factor x after its k parts, a
///    product of the parts' sums errs by (2 rho + rho^2) |x y| + phi_x |y| (1 + rho) + phi_y
///    (1 + rho) |x| + phi_x phi_y, and a part is at most m_0 = 1 + rho_1, m_i = rho_i + rho_i+1
///    times |x|, up to phi. Pairs i + j >= k are dropped: the sum of their m_i m_j is added to 2
///    rho + rho^2. What a dropped pair and the roundings of a chain take of phi is covered by a
///    factor 1 + 4 rho_1 on it. phi is what lies below the last bit of the format: for a tensor
///    scaled to at least M, that over M, of its largest element. In the weights phi counts like
///    underflow (step 5), in V it is an error of O, as the weights of a row sum to the normaliser.
///    Chains: the largest product has its steps at an absolute sum of m_0^2 A; the small ones
///    theirs at sigma A, sigma the sum of m_i m_j over the pairs kept but for (0, 0), as they are
///    summed before or apart, with one more rounding where they meet. One chain of P V over all
///    blocks has all steps at full size, whatever the order within a block.
///    Promoted blocks: kappa of a block's keys, then at most one addition a block, each at most u.
///
/// 11. A reference r that lags (reference_lag, in natural units lambda) is at most the maximum, and
///    at most lambda below it once its block has been seen. The first exponent may then be up to
///    lambda above 0, and the telescope of step 2 is longer by twice that: H_j grows by 2 lambda (u
///    + argument_error). Computed weights are up to e^lambda, the normaliser is larger and |r| may
///    be by as much; step 5 holds a fortiori. Sums of P V overflow as much earlier.
///
/// 12. A subnormal factor of the exponent, scale log2(e), is rounded to a multiple of 2^-149, or
///    flushed to 0: a relative error e_s (subnormal_scale_error) far above u that all scores of all
///    rows share. H_j grows by e_s D_j, as the part of it that the keys share cancels; a maximum in
///    units of log2 carries e_s into the LSE, and so does step 7.
///
/// 13. lse_absolute is the one constant no test can isolate where nothing is flushed: m + ln l is
///    exact when it is subnormal (sums of fp32 numbers are multiples of 2^-149), and fl(m scale)
///    loses half of 2^-149, less than the loss at a scaled score that score_absolute allows and
///    such a kernel does not have. It is kept, as it costs nothing.
///
/// 14. Score modifications. After the softcap a score is a sum of up to three terms, t_0 + a + b,
///    a = -slope distance and b the bias: no term passes through more than k roundings, a product
///    and one addition for a, one addition for b, and one more of t_0 where the scale has not
///    rounded it before; in units of log2 a and b are multiplied by fl(log2 e), two more. So in any
///    order the sum errs by at most g(k) (|t_0| + |a| + |b|) and by (1 + g(k)) times the error
///    delta_j that t_0 brought along. What a product or a flushed sum loses near 0 is absolute, k
///    times. A distance is exact below 2^24, and above it costs one rounding more.
///    A sink s_0 is one more key, of value 0, A_0 = 0 and delta_0 = 0, or 2 u |s_0| in units of
///    log2: e^s_0 enters the sum like any weight, first, last or as a block between, so the maximum
///    may move once more, at it, and a chain is longer by one. So steps 2 to 8 hold with n + 1 keys
///    and one block more, that key among those of the sums, of the hull (|0 - O|) and of the
///    maxima. This asks of a kernel that the sink takes part in its maximum.
///    Where a bias or lists hide keys, those of P V lie in as many steps of a tensor core as under
///    padding, and a document begins within a step, as a window does: kappa of step 4. Dropout. O =
///    sum p_j (d_j v_j), so all steps hold with d_j v_j for v_j, LSE's as they are. The factor 1 /
///    (1 - p) is rounded twice and a product with it once, be it of a weight or of a sum: Y grows
///    by three roundings. A weight times it is larger, and reaches the end of P's format as much
///    sooner.
///
/// 15. Epilogues. O = G A + R is formed in fp32 of A as it is before step 6, whose error is e: |G|
/// e
///    comes through, the product adds u |G| (|A| + e) and the sum u times the sum of the magnitudes
///    of its terms, so that a residual that cancels G A leaves an error of the size of what it
///    cancelled. One fused multiply-add rounds less. Step 6 then rounds O. A kernel that stores A
///    first (rounds_before_epilogue) has step 6 three times: at A, at G A where a residual follows,
///    and at O. A product or a sum loses the smallest number where it is subnormal; who flushes
///    loses 2^-126 there, and as much of each factor. A row that sees no key has A = 0 exactly, and
///    so O = R.
///
/// The bound is infinite when a score, a partial sum of P V or the output can overflow: nothing can
/// be proven then. What the unshifted form loses to over- and underflow is left out: its bound is
/// that of an ideal kernel.

/// G above which (a) and (b) of step 3 are hardly better than (c) and are not evaluated.
inline constexpr double largest_useful_growth = 8;
/// max_j ln(p_j e^H_j) above which ln sum_j p_j e^H_j is bounded by that maximum plus ln n, as the
/// sum could overflow.
inline constexpr double largest_summed_exponent = 100;

/// g of step 2 above which nothing is claimed: weights that far above 1 can overflow P's format.
inline constexpr double largest_weight_exponent = 8;

/// delta_j. Number: double or a multiprecision type, here and below.
template <class Number>
ATTEST_HOST_DEVICE Number score_error(const BoundConstants& c, const Number& score,
                                      const Number& absolute_score) {
  using std::abs;
  return exponent_slack *
         (c.score_relative * absolute_score + c.score_rounding * abs(score) + c.score_absolute);
}

/// Step 14: what additions after the softcap add to delta_j. `magnitude` is |t_0| + |a| + |b|, or
/// that of a sink.
template <class Number>
ATTEST_HOST_DEVICE Number added_error(const BoundConstants& c, const Number& magnitude) {
  return exponent_slack * c.added * magnitude;
}

/// H_j. `largest` is max_i (s_i + delta_i), `largest_magnitude` is max_i (|s_i| + delta_i).
template <class Number>
ATTEST_HOST_DEVICE Number log_weight_error(const BoundConstants& c, const Number& score,
                                           const Number& delta, const Number& largest,
                                           const Number& largest_magnitude) {
  using std::abs;
  Number distance = largest - score + delta;
  if (!c.shifts_by_maximum) distance = std::max<Number>(distance, abs(score) + delta);
  return delta + exponent_slack * (c.argument * distance + c.exponent +
                                   (c.largest_score + c.partial_score) * largest_magnitude);
}

/// Step 5: lower bound of the computed normaliser. `log_share` is ln L + m - m_hat at least, that
/// is LSE - max_i (s_i + delta_i); `denominator` is sum_j p_j e^-H_j.
template <class Number>
ATTEST_HOST_DEVICE Number normaliser_floor(const BoundConstants& c, const Number& largest_magnitude,
                                           const Number& log_share, const Number& denominator) {
  using std::exp;
  // The largest weight alone: 1, or e^-g with a factor for the error of its own exp.
  const Number largest_weight =
      c.largest_score > 0 ? exp(Number(-c.largest_score * largest_magnitude)) / 2 : Number(1);
  return std::max<Number>(largest_weight * exp(Number(-c.largest_weight)),
                          exp(log_share) * denominator);
}

/// Values that all columns of a row share.
template <class Number>
struct RowSummary {
  Number growth;            ///< G
  Number log_growth;        ///< bound of |ln sum_j p_j e^h_j|
  Number normaliser_floor;  ///< lower bound of the computed normaliser
  Number twice_formed;  ///< sum_j p'_j (e^x_j - 1), x_j the log difference of two evaluations of a
                        ///< weight; else 0
  Number largest_magnitude;  ///< max_j (|s_j| + delta_j)
};

/// Relative error of the computed normaliser against the sum of the weights that the numerator
/// uses.
template <class Number>
ATTEST_HOST_DEVICE Number normaliser_error(const BoundConstants& c, const RowSummary<Number>& row) {
  const Number lost = c.visible_keys * c.normaliser_absolute / row.normaliser_floor;
  return (1 + c.normaliser) * (1 + lost) * (1 + row.twice_formed) - 1;
}

/// Values of one element that its bound needs: exact O, W = sum p|v|, E1, sum |v_j| and max |v_j|
/// over the visible keys.
template <class Number>
struct ElementTerms {
  Number o, w, e1, v_abs_sum, v_abs_max;
};

/// Steps 4 and 5: distance of the computed output from O before it is rounded to the output format.
template <class Number>
ATTEST_HOST_DEVICE Number core_error(const BoundConstants& c, const RowSummary<Number>& row,
                                     const ElementTerms<Number>& e) {
  using std::abs;
  using std::exp;
  const Number infinity = std::numeric_limits<double>::infinity();
  const Number z = normaliser_error(c, row);
  const Number weight_exponent = c.largest_score * row.largest_magnitude + c.largest_weight;
  if (!(z < 1) || !(weight_exponent <= largest_weight_exponent)) return infinity;
  const Number largest_weight = weight_exponent > 0 ? Number(exp(weight_exponent)) : Number(1);
  if (!(largest_weight < c.weight_max)) return infinity;
  const bool is_useful = row.growth <= largest_useful_growth;
  const Number w =
      is_useful ? std::min<Number>(e.w + e.e1 + 2 * e.w * row.growth, e.v_abs_max) : e.v_abs_max;
  const Number o = std::min<Number>(abs(e.o) + e.e1, w);
  if (!(c.visible_keys * w * largest_weight * c.sum_scale < c.max_finite)) return infinity;
  if (!(e.v_abs_max * (1 + c.numerator) * (1 + z) < c.partial_max)) return infinity;
  const Number floor =
      c.divides_early ? std::min<Number>(1, row.normaliser_floor) : row.normaliser_floor;
  const Number lost =
      (c.weight_absolute * (1 + c.numerator) * (e.v_abs_sum + c.visible_keys * c.value_absolute) +
       c.product_absolute) /
          floor +
      c.value_absolute * (1 + c.numerator) * (1 + z);
  const Number sums = (c.numerator * w + lost + z * o) / (1 - z);
  return evaluation_slack * (e.e1 + sums * (1 + c.division) + c.division * o);
}

/// Step 6: the bound of an element, given the bound before the last rounding.
template <class Number>
ATTEST_HOST_DEVICE Number output_error(const BoundConstants& c, const Number& o,
                                       const Number& core) {
  return stored_error<Number>({c.output_rounding, c.output_absolute, c.output_max}, o, core);
}

/// Step 7.
template <class Number>
ATTEST_HOST_DEVICE Number lse_error(const BoundConstants& c, const RowSummary<Number>& row,
                                    const Number& lse) {
  using std::abs;
  using std::log;
  const Number z = normaliser_error(c, row);
  const Number largest_rounding = c.largest_score * row.largest_magnitude;
  if (!(z < 1) || !(largest_rounding <= largest_weight_exponent)) {
    return std::numeric_limits<double>::infinity();
  }
  const Number sum = row.log_growth - log(Number(1 - z));
  const Number logarithm = c.logarithm * (log(Number(c.visible_keys)) + c.lag + sum);
  Number before = sum + logarithm + largest_rounding;
  if (c.lse_scaling > 0) {
    // |m_hat| = |LSE_hat - ln l_hat|, and l_hat lies between e^-g and n e^lambda times its errors.
    before += c.lse_scaling * (abs(lse) + log(Number(c.visible_keys)) + c.lag + 2 * before);
  }
  return evaluation_slack * (before + c.rounding * (abs(lse) + before)) + c.lse_absolute;
}

}  // namespace attest
