#pragma once

#include <string>

namespace attest {
/// Evaluation of exp with its error: |computed - exact| <= (relative_error + argument_error * |x|)
/// * exact for x <= 0, where argument_error holds everything that grows with the argument (rounding
/// of a log2(e) factor, for example).
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

/// Unit of the running maximum, which decides how the LSE is formed.
enum class LseForm {
  natural,  ///< fl(m + ln l), m a scaled score, or fl(m scale) for a scale inside the exponent
  log2      ///< m holds log2(e), as scores times fl(scale log2 e) do: fl(m ln 2) + ln l, or ln 2
            ///< times fl(m + log2 l)
};

}  // namespace attest
