#include "core/attention/parts.hpp"

#include <algorithm>
#include <cmath>

namespace attest {

const ElementFormat& part_format(Parts::Format format) {
  // TF32 has fp32's exponents and fp16's significand.
  static constexpr ElementFormat tf32{.name = "tf32",
                                      .safetensors_name = {},
                                      .size_bytes = 4,
                                      .significand_bits = 11,
                                      .unit_roundoff = 0x1p-11,
                                      .max_finite = 0x1.ffcp127,
                                      .min_normal = 0x1p-126,
                                      .min_subnormal = 0x1p-136,
                                      .overflow = Overflow::to_infinity,
                                      .poison = std::nullopt};
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

}  // namespace attest
