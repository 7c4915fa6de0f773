#pragma once

#include <cstdint>
#include <string>

#include "core/attention/element_type.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// How products are summed in Q K^T and P V.
struct Accumulation {
  enum class Kind { fp32_fma, tensor_core } kind = Kind::fp32_fma;
  int fused_terms = 1;     ///< b: products that one tensor-core step adds exactly
  int fraction_bits = 24;  ///< F: bits kept when the terms are aligned to the largest
};

/// Tensor cores by architecture, for 16-bit inputs and fp32 accumulators: b products and the
/// accumulator are aligned to the largest of them, cut at F fraction bits, added, and the sum is
/// cut to fp32. Sources: Fasi, Higham, Mikaitis, Pranesh, PeerJ CS 7:e330 (2021) for Volta, Turing
/// and Ampere; MMA-Sim, arXiv 2511.10909; Khattak and Mikaitis, arXiv 2512.07004 (bit-exact on
/// Ada, Hopper and Blackwell). For fp16, and for bf16 where it exists (Ampere on); fp8, whose b
/// differs and whose sums Ada and Hopper cut to 13 bits, is no format of this project.
[[nodiscard]] Accumulation volta();      ///< b = 4, F = 23
[[nodiscard]] Accumulation turing();     ///< b = 4, F = 24; MMA-Sim has b = 8, which costs less
[[nodiscard]] Accumulation ampere();     ///< b = 8, F = 24
[[nodiscard]] Accumulation ada();        ///< b = 8, F = 24
[[nodiscard]] Accumulation hopper();     ///< b = 16, F = 25
[[nodiscard]] Accumulation blackwell();  ///< b = 16, F = 25
/// For TF32 factors: b = 8, F = 25, as recorded on an H200 (gpu/arithmetic).
[[nodiscard]] Accumulation hopper_tf32();

/// What tensor cores read of factors that a kernel holds in fp32. A factor becomes the sum of
/// `count` numbers of a narrower format: hi is the factor in that format, lo what hi leaves of it,
/// and so on. Of two factors the parts i and j are multiplied where i + j < count (1, 3 or 6
/// products), and what a chain sums of the small products is summed before, or apart from, the
/// products of hi and hi. [Ootomo and Yokota, IJHPCA 36(4), 2022; arXiv 2203.03341]
struct Parts {
  enum class Format { whole, tf32, fp16, bf16 } format = Format::whole;  ///< whole: not split
  int count = 1;                                                         ///< 1 to 3
  int cut = 0;  ///< the last so many parts are cut, the others rounded to nearest
  /// The elements are first multiplied by a power of two, one for each head or for rows that a
  /// kernel takes together, that brings the largest of them to at least this; 0: they are not.
  /// Elements that no row sees may count too: a kernel may then not claim ignores_hidden_nan.
  double scaled_to = 0;
};
/// TF32, fp16 and bf16 as the formats of parts: digits, range and smallest number.
[[nodiscard]] const ElementFormat& part_format(Parts::Format format);
/// |x - its first `parts` parts| <= this times |x|, for parts that lie in the format's normal
/// range.
[[nodiscard]] double rest_of(const Parts& how, int parts);
/// Absolute error of a part below the format's normal range; of elements after scaling.
[[nodiscard]] double part_floor(const Parts& how);

/// How exp is evaluated: |computed - exact| <= (relative_error + argument_error * |x|) * exact for
/// x <= 0, where argument_error holds everything that grows with the argument (rounding of a
/// log2(e) factor, for example).
struct ExpMethod {
  std::string name;
  double relative_error;
  double argument_error;
  /// exp(0) is exactly 1: a rescale by a maximum that stayed then costs nothing.
  bool is_one_at_zero = true;
  /// The error scatters over the arguments as a rounding does, so that its usual size is known.
  /// False: only its limit is known. Neighbouring arguments may then err alike, all of them as much
  /// as is allowed.
  bool is_scattered = true;
};

/// Library expf: 2 ulp over the full range [CUDA C++ Programming Guide, mathematical functions
/// appendix]. glibc: 1 ulp.
[[nodiscard]] ExpMethod library_expf();
/// __expf: 2 + floor(|1.173 x|) ulp [same source].
[[nodiscard]] ExpMethod fast_expf();
/// exp2 of an argument already multiplied by log2(e) in fp32: the factor's rounding and the
/// product's.
[[nodiscard]] ExpMethod exp2_folded();
/// ex2.approx.f32 of an argument multiplied by log2(e) in fp32: 2 ulp, relative 2^-22 at most [PTX
/// ISA, ex2], and the folding of exp2_folded.
[[nodiscard]] ExpMethod ex2_approx();
/// exp2 as a polynomial on [0, 1) whose constant coefficient is 1, of degree 3, 4 or 5: 8.8e-5,
/// 3.0e-6 or 8.5e-8 relative [FlashAttention-4's coefficients], its roundings in Horner's form, and
/// the folding. Its error swings between the limits, so it is not scattered. Throws InvalidInput
/// for another degree.
[[nodiscard]] ExpMethod polynomial_exp2(int degree);

/// What happens to the partial output when a later key block raises the running maximum.
enum class Rescale {
  none,             ///< the maximum is known before the weights are formed (three-pass, two-pass)
  deferred,         ///< O and l are multiplied by exp(m_old - m_new); one division at the end
  normalised_steps  ///< O is kept normalised: multiplied by l_old / l_new at every block
};

/// What the partial results of key splits are, and how they are merged. M is the largest of the
/// splits' maxima, or of their LSE.
enum class Merge {
  sums,             ///< (m_p, l_p, acc_p): l and acc times exp(m_p - M), added, divided at the end
  normalised_sums,  ///< (m_p, l_p, O_p), O_p divided by l_p: weights l_p exp(m_p - M)
  lse_pairs         ///< (O_p, LSE_p): weights exp(LSE_p - M), LSE = M + ln of their sum
};

/// In which unit the maximum is kept, and so how the LSE is formed.
enum class LseForm {
  natural,  ///< fl(m + ln l), m a scaled score, or fl(m scale) for a scale inside the exponent
  log2      ///< m holds log2(e), as scores times fl(scale log2 e) do: fl(m ln 2) + ln l, or ln 2
            ///< times fl(m + log2 l)
};

/// Which roundings a kernel performs, for one problem and plan. The error bound follows from it; no
/// tolerance is ever typed in by hand. u = 2^-24 is the roundoff of the fp32 arithmetic between the
/// points named here.
struct PrecisionPlan {
  Accumulation score{};     ///< Q K^T, chain of head_dim
  Accumulation value{};     ///< P V, chain of key_len
  Parts score_parts{};      ///< of Q and K
  Parts value_parts{};      ///< of P and V; scaled_to is V's
  double weight_scale = 1;  ///< power of two that P carries while it is split
  /// Keys of a block whose P V is summed apart; O then takes it by one fused multiply-add with the
  /// rescaling factor. 0: P V of all blocks is one chain.
  std::int64_t promoted_keys = 0;
  bool scale_after_dot = true;  ///< s = fl(scale * dot): one more rounding of the score
  bool scale_folded_into_q =
      false;  ///< q is multiplied by scale in fp32 first: one more rounding per term
  /// |computed - c tanh(x / c)| <= softcap_error * c for a softcap c, whatever x; asked only where
  /// the problem has one.
  double softcap_error = 0;
  ExpMethod exp = library_expf();
  /// How far below the largest score of its row, in units of log2, the number may lie that a
  /// weight's exponent is taken from: weights are then up to 2^reference_lag.
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
  /// fp32 results below 2^-126 become 0 (ftz), and so does V where its elements are that small.
  /// Elements of Q and K are taken as they are.
  bool flushes_subnormals = false;
};

}  // namespace attest
