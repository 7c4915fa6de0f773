#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// A tensor of numbers to codes of 8 bits and scales: the quantiser before quantised_operation. X
/// is K-shaped, [batch, kv_heads, key_len, head_dim] in element_type; the codes have its shape in
/// the format of Problem::codes.k, the scales scales_shape() of it and Problem::codes.k_scales, in
/// fp32, whatever the lengths. Queries, their heads, masks and the scale of scores do not matter.
///
/// It is a function of bits, and the answer is one: nothing is left to a kernel's roundings.
///   amax  = the largest finite |x| of the elements that share a scale, those of rows that an
///           entry's length leaves; 0 where there is none. NaN and infinities do not enter.
///   scale = fl(amax / M), one correctly rounded division in fp32, subnormal results kept; M is the
///           code's largest number: 448 of e4m3, 57344 of e5m2, 127 of int8. Where that is 0, as
///           amax is or as it is too small, the scale is 1. Without scales it is 1, too.
///   code  = the number of the code nearest to fl(x / scale), one correctly rounded division in
///           fp32 and one rounding of that: ties to even, subnormal codes kept, and M with x's sign
///           for whatever lies past it, infinities too. A 0 keeps its sign, and what is rounded to
///           0 has x's, but int8 has one 0, and never -128. Of NaN it is a NaN, whichever of the
///           format's; int8's 0.
/// Where amax / M is subnormal the scale has few digits, and quotients past M saturate.
extern const Operation quantise_operation;

/// Tensors of quantise_operation, by number.
namespace quantising {
inline constexpr InputIndex x{0};
inline constexpr OutputIndex codes{0}, scales{1};
}  // namespace quantising

/// Roundings of its kernels: those of the definition and no others.
struct DefinedRoundings {};

}  // namespace attest
