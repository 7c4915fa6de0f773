#include "core/attention/precision_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr double unit_roundoff = 0x1p-24;
// One ulp of an fp32 value x is at most 2^-23 |x|, so an error of k ulp is a relative error of at
// most k 2^-23.
constexpr double ulp = 2 * unit_roundoff;
// exp(-104) lies below half the smallest fp32 subnormal: past it the result is 0 or lost among the
// underflow terms.
constexpr double largest_argument = 104;

Accumulation tensor_core(int fused_terms, int fraction_bits) {
  return {Accumulation::Kind::tensor_core, fused_terms, fraction_bits};
}

}  // namespace

Accumulation volta() {
  return tensor_core(4, 23);
}
Accumulation turing() {
  return tensor_core(4, 24);
}
Accumulation ampere() {
  return tensor_core(8, 24);
}
Accumulation ada() {
  return tensor_core(8, 24);
}
Accumulation hopper() {
  return tensor_core(16, 25);
}
Accumulation blackwell() {
  return tensor_core(16, 25);
}

Accumulation hopper_tf32() {
  return tensor_core(8, 25);
}

const ElementFormat& part_format(Parts::Format format) {
  // TF32 has fp32's exponents and fp16's significand.
  static constexpr ElementFormat tf32{"tf32", 4, 11, 0x1p-11, 0x1.ffcp127, 0x1p-126, 0x1p-136};
  switch (format) {
    case Parts::Format::fp16:
      return format_of(ElementType::fp16);
    case Parts::Format::bf16:
      return format_of(ElementType::bf16);
    case Parts::Format::tf32:
      return tf32;
    case Parts::Format::whole:
      break;
  }
  return format_of(ElementType::fp32);
}

double rest_of(const Parts& how, int parts) {
  if (how.format == Parts::Format::whole) return 0;
  // Rounding to p bits leaves half an ulp of [2^e, 2^(e+1)), 2^(e-p), or less than that: then the
  // next part has its ulp from the binade below. A cut leaves twice as much.
  const int cut = std::max(0, how.cut - (how.count - parts));
  const int bits = parts * (part_format(how.format).significand_bits + 1) - 1 - cut;
  // A rest is a multiple of the fp32 number's last bit, 2^(e-23); that of a cut is less than twice
  // half an ulp.
  if (bits >= 24) return 0;
  return std::ldexp(1.0, -bits) - (cut > 0 ? 0x1p-23 : 0);
}

double part_floor(const Parts& how) {
  if (how.format == Parts::Format::whole) return 0;
  return part_format(how.format).min_subnormal / (how.cut > 0 ? 1 : 2);
}

ExpMethod library_expf() {
  return {"expf", 2 * ulp, 0};
}

ExpMethod fast_expf() {
  // floor(1.173 |x|) <= 1.173 |x|.
  return {"__expf", 2 * ulp, 1.173 * ulp};
}

ExpMethod exp2_folded() {
  // The argument of exp2 is x log2(e) (1 + r), |r| <= (1 + u)^2 - 1: one u for the fp32 factor, one
  // for the product. That multiplies the result by e^(x r), and (e^(|x| r) - 1) / |x| grows with
  // |x|: its value at the end of the useful range serves all. exp2f and ex2.approx.f32 add 2 ulp of
  // their own.
  const double own = 2 * ulp;
  const double argument = unit_roundoff * (2 + unit_roundoff);
  return {"exp2 of a folded argument", own,
          (1 + own) * std::expm1(largest_argument * argument) / largest_argument};
}

ExpMethod ex2_approx() {
  ExpMethod exp = exp2_folded();
  exp.name = "ex2.approx of a folded argument";
  return exp;
}

ExpMethod polynomial_exp2(int degree) {
  if (degree < 3 || degree > 5) {
    throw InvalidInput(fmt::format("polynomial_exp2: degree is {}; allowed: 3, 4, 5", degree));
  }
  constexpr double approximation[] = {8.8e-5, 3.0e-6, 8.5e-8};
  // 2^f, f in [0, 1), by fused multiply-adds of positive terms: step k rounds what is left of the
  // series, sum_{i >= k} c_i f^i, which is at most 1, 0.5, 0.16, 0.04, ... of 2^f. Together < 2 u.
  ExpMethod exp = exp2_folded();
  exp.name = fmt::format("polynomial exp2 of degree {}", degree);
  exp.relative_error = approximation[degree - 3] * (1 + ulp) + 2 * unit_roundoff;
  exp.argument_error *= 1 + exp.relative_error;
  exp.is_scattered = false;
  return exp;
}

}  // namespace attest
