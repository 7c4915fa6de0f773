#pragma once

#include "core/attention/plan.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"

namespace attest {

/// Attention replayed on the CPU with the tiles of `plan` and every rounding at the point that
/// `precision` names.
///
/// inputs: Q, K, V as the kernel reads them, representable in problem.element_type. Result: O
/// rounded once to that type, LSE in fp32 (natural log). Empty rows give 0 and -inf; NaN in a
/// visible input gives NaN in the rows that see it; invisible keys are not read.
///
/// Plan: key_tile keys between two rescales (0: all), key_splits parts of whole key tiles (0 or 1:
/// one part), merged at the end. query_tile is accepted and moves no rounding: rows do not meet.
///
/// Scores. x = q.k by precision.score; c = scale, or fl(scale log2 e) when the exponential is exp2.
///   scale_after_dot       s = fl(c x), weights e(fl(s - m)), e = exp or exp2
///   scale_folded_into_q   q' = fl(c q) kept in fp32, s = x, weights as above
///   neither               FlashAttention's order: m over x, weights e(fma(x, c, -fl(m c))),
///   rescale e(fl(fl(m - m') c)),
///                         LSE = fl(m scale) + ln l
/// lse says in which unit m is kept: log2 needs exp2, makes c = fl(scale log2 e) wherever it
/// enters, and LSE = fl(m' ln 2) + ln l with m' = m or fl(m c). With exp2 and natural, weights of
/// the first two are exp2(fl(fl(s - m) log2 e)). Exponentials are the C library's expf and exp2f;
/// `__expf` is exp2f(fl(y log2 e)).
///
/// Per key block, in this order: m' = max; l and the accumulator times the rescale factor
/// (deferred), or the accumulator times fl(l factor) and divided by the new l afterwards
/// (normalised_steps), or nothing (none: m is taken over all keys of the part first); l adds the
/// weights key by key, before or after they are rounded to weight_format (sums_rounded_weights);
/// the accumulator adds rounded weights times V by precision.value, its old value being the addend
/// of the chain. At the end: parts merged as `merge` says,
/// O_p rounded to partial_format where parts are finished first, one division, m + ln l.
///
/// Split factors (score_parts, value_parts): every head is scaled by its largest element, the small
/// products come first in one chain (split_product.hpp). promoted_keys > 0: the product of a key
/// block is formed apart, and the accumulator takes it by fma(acc, factor, product). A reference
/// never lags.
///
/// flushes_subnormals is not replayed: a caller that wants it sets the processor's mode.
///
/// Throws InvalidInput for negative plan fields, an exponential of another name, lse log2 without
/// exp2, both scale flags at once, or accumulation parameters outside accumulate_product's ranges.
[[nodiscard]] Outputs emulate(const Problem& problem, const Plan& plan,
                              const PrecisionPlan& precision, const Inputs& inputs);

}  // namespace attest
