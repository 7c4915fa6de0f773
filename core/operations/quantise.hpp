#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// A tensor of numbers to codes of 8 or 4 bits and scales: the quantiser before
/// quantised_operation. X is K-shaped, [batch, kv_heads, key_len, head_dim] in element_type; the
/// codes have its shape in the format of Problem::codes.k, the scales scales_shape() of it and
/// Problem::codes.k_scales, in Problem::codes.scale_format, whatever the lengths. Queries, their
/// heads, masks and the scale of scores do not matter.
///
/// It is a function of bits, and the answer is one: nothing is left to a kernel's roundings.
///   amax  = the largest finite |x| of the elements that share a scale, those of rows that an
///           entry's length leaves; 0 where there is none. NaN and infinities do not enter.
///   scale = fl(amax / M), one correctly rounded division in fp32, subnormal results kept; M is the
///           code's largest number: 448 of e4m3, 57344 of e5m2, 127 of int8, 6 of e2m1, 7 of int4.
///           Where that is 0, as amax is or as it is too small, the scale is 1. Without scales it
///           is 1, too.
///   scale of ue8m0 = the least power of two, from 2^-127 on, of which M times it is amax or more;
///           1 where amax is 0. That is 2^ceil(log2(amax / M)), of real numbers: no number of the
///           group saturates. (The OCP microscaling specification 1.0 takes the largest power of
///           two up to amax over the largest up to M: 1 for 500 of e4m3, which then saturates.)
///   code  = the number of the code nearest to fl(x / scale), one correctly rounded division in
///           fp32 and one rounding of that: ties to even, subnormal codes kept, and M with x's sign
///           for whatever lies past it, infinities too. A 0 keeps its sign, and what is rounded to
///           0 has x's, but whole numbers have one 0, and neither -128 nor -8 is ever made. Of NaN
///           it is a NaN, whichever of the format's; 0 where there is none.
/// Where amax / M is subnormal the scale of fp32 has few digits, and quotients past M saturate.
/// Codes of 4 bits lie two a byte, the even column's in the low half, and each row begins with a
/// byte of its own: what the other half of an odd row's last byte holds is nobody's.
extern const Operation quantise_operation;

/// Tensors of quantise_operation, by number.
namespace quantising {
inline constexpr InputIndex x{0};
inline constexpr OutputIndex codes{0}, scales{1};
}  // namespace quantising

/// Roundings of its kernels: those of the definition and no others.
struct DefinedRoundings {};

}  // namespace attest
