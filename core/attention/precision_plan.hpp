#pragma once

#include <cstdint>

#include "core/attention/accumulation.hpp"
#include "core/attention/element_type.hpp"
#include "core/attention/exp_method.hpp"
#include "core/attention/parts.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// Treatment of the partial output when a later key block raises the running maximum.
enum class Rescale {
  none,             ///< the maximum is known before the weights are formed (three-pass, two-pass)
  deferred,         ///< O and l are multiplied by exp(m_old - m_new); one division at the end
  normalised_steps  ///< O is kept normalised: multiplied by l_old / l_new at every block
};

/// Partial results of key splits and the formula that merges them. M is the largest of the splits'
/// maxima, or of their LSE.
enum class Merge {
  sums,             ///< (m_p, l_p, acc_p): l and acc times exp(m_p - M), added, divided at the end
  normalised_sums,  ///< (m_p, l_p, O_p), O_p divided by l_p: weights l_p exp(m_p - M)
  lse_pairs         ///< (O_p, LSE_p): weights exp(LSE_p - M), LSE = M + ln of their sum
};

/// Roundings that a kernel performs for one problem and plan. The error bound follows from them; no
/// tolerance is ever typed in by hand. u = 2^-24 is the roundoff of the fp32 arithmetic between the
/// points named here.
struct PrecisionPlan {
  Accumulation score{};     ///< Q K^T, chain of head_dim
  Accumulation value{};     ///< P V, chain of key_len
  Parts score_parts{};      ///< of Q and K
  Parts value_parts{};      ///< of P and V; scaled_to is V's
  double weight_scale = 1;  ///< power of two that P carries while it is split or rounded
  /// Keys of a block whose P V is summed apart; O then takes it by one fused multiply-add with the
  /// rescaling factor. 0: P V of all blocks is one chain.
  std::int64_t promoted_keys = 0;
  bool scale_after_dot = true;  ///< s = fl(scale * dot): one more rounding of the score
  bool scale_folded_into_q =
      false;  ///< q is multiplied by scale in fp32 first: one more rounding per term
  /// Roundings of a score, and of an element of O, by scales beside codes (quantised_operation).
  int score_scalings = 0, value_scalings = 0;
  /// |computed - c tanh(x / c)| <= softcap_error * c for a softcap c, whatever x; asked only where
  /// the problem has one.
  double softcap_error = 0;
  ExpMethod exp = library_expf();
  /// Weights are 2^(score - reference). The reference follows the row's largest score, at most this
  /// far below it, in units of log2: no weight is above 2^reference_lag. 0: it is the maximum.
  double reference_lag = 0;
  bool shifts_by_maximum =
      true;  ///< false: the unshifted form, which overflows; its bound is that of an ideal kernel
  ElementType weight_format = ElementType::fp32;  ///< P before P V
  bool sums_rounded_weights = false;  ///< l adds P after rounding (true) or before (false)
  Rescale rescale = Rescale::deferred;
  std::int64_t blocks = 1;  ///< key blocks between which a rescale can happen (all splits together)
  std::int64_t splits = 1;  ///< partial results merged at the end
  std::int64_t normaliser_chain = 1;  ///< h: longest chain of additions in l
  double division_error = 0;          ///< relative error of the final normalisation
  double log_error = 0;               ///< relative error of ln l in the LSE
  LseForm lse = LseForm::natural;
  Merge merge = Merge::sums;                       ///< of key splits, when there are several
  ElementType partial_format = ElementType::fp32;  ///< O_p, stored between split and merge
  /// O is rounded to its format before its gate and its residual are applied, and after each of
  /// them: a launch of its own applies them. false: once, after both.
  bool rounds_before_epilogue = false;
  /// fp32 results below 2^-126 become 0 (ftz), and so does V where its elements are that small.
  /// Elements of Q and K are taken as they are.
  bool flushes_subnormals = false;
};

}  // namespace attest
