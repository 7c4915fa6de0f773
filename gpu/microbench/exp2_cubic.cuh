#pragma once

namespace attest::microbench {

/// 2^y for y <= 0 without MUFU: y is split into a whole number and f in [-1/2, 1/2], 2^f is a cubic
/// (Remez, relative error 7.5e-5), and the whole number is added to the exponent. 5 FADD/FFMA-pipe
/// additions and FFMAs for the split and cubic, FMNMX and LEA. [Cody and Waite 1980]
__device__ inline float exp2_cubic(float y) {
  y = fmaxf(y, -127.0F);
  const float whole_bits = __fadd_rn(y, 0x1.8p23F);
  const float f = __fadd_rn(y, -__fadd_rn(whole_bits, -0x1.8p23F));
  float p = __fmaf_rn(0.055171669074864024F, f, 0.24261112219433098F);
  p = __fmaf_rn(p, f, 0.6932609854573362F);
  p = __fmaf_rn(p, f, 0.9999280735404955F);
  return __uint_as_float((__float_as_uint(whole_bits) << 23U) + __float_as_uint(p));
}

}  // namespace attest::microbench
