#pragma once

#include <cstdint>
#include <string>

#include "core/element_type.hpp"
#include "core/plan.hpp"
#include "core/problem.hpp"

namespace attest {

/// How products are summed in Q K^T and P V.
struct Accumulation {
  enum class Kind { fp32_fma, tensor_core } kind = Kind::fp32_fma;
  int fused_terms = 1;  ///< b: products that one tensor-core step adds exactly (16 on Hopper fp16)
  int fraction_bits =
      24;  ///< F: bits kept when the terms are aligned to the largest (25 on Hopper)
};

/// How exp is evaluated: |computed - exact| <= (relative_error + argument_error * |x|) * exact for
/// x <= 0, where argument_error holds everything that grows with the argument (rounding of a
/// log2(e) factor, for example).
struct ExpMethod {
  std::string name;
  double relative_error;
  double argument_error;
};

/// Library expf: 2 ulp over the full range [CUDA C++ Programming Guide, mathematical functions
/// appendix]. glibc: 1 ulp.
[[nodiscard]] ExpMethod library_expf();
/// __expf: 2 + floor(|1.173 x|) ulp [same source].
[[nodiscard]] ExpMethod fast_expf();
/// exp2 of an argument already multiplied by log2(e) in fp32: the factor's rounding and the
/// product's.
[[nodiscard]] ExpMethod exp2_folded();

/// What happens to the partial output when a later key block raises the running maximum.
enum class Rescale {
  none,             ///< the maximum is known before the weights are formed (three-pass, two-pass)
  deferred,         ///< O and l are multiplied by exp(m_old - m_new); one division at the end
  normalised_steps  ///< O is kept normalised: multiplied by l_old / l_new at every block
};

/// Which roundings a kernel performs, for one problem and plan. The error bound follows from it; no
/// tolerance is ever typed in by hand. u = 2^-24 is the roundoff of the fp32 arithmetic between the
/// points named here.
struct PrecisionPlan {
  Accumulation score{};         ///< Q K^T, chain of head_dim
  Accumulation value{};         ///< P V, chain of key_len
  bool scale_after_dot = true;  ///< s = fl(scale * dot): one more rounding of the score
  bool scale_folded_into_q =
      false;  ///< q is multiplied by scale in fp32 first: one more rounding per term
  ExpMethod exp = library_expf();
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
};

}  // namespace attest
