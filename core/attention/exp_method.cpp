#include "core/attention/exp_method.hpp"

#include <fmt/format.h>

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

}  // namespace

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
