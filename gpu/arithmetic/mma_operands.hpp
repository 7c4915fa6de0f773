#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"

namespace attest {

/// Depth of one instruction, 32 bytes of factors: fp16 and bf16 in mma.sync.m16n8k16, fp32 as TF32
/// in m16n8k8, codes of 8 bits in wgmma's k32.
[[nodiscard]] constexpr int mma_depth(ElementType type) {
  if (type == ElementType::fp32) return 8;
  return is_code(type) ? 32 : 16;
}

/// Kind of factors that are drawn.
enum class OperandKind : int {
  ordinary,    ///< numbers below 2, small ones rarer
  near,        ///< sizes within a factor of 32: every term counts
  straddling,  ///< sizes so far apart that the cut of the alignment decides
  any_size,    ///< every finite size alike
  cancelling,  ///< pairs of products that cancel, or leave their last bits
  subnormal,   ///< at the lower end of the format, and of fp32
  huge,        ///< at the upper end: sums overflow
  special,     ///< infinities, NaN and both zeros among ordinary numbers
  zeros        ///< zeros opposite numbers of any size: what would their products' exponent be?
};
inline constexpr int operand_kinds = 9;
[[nodiscard]] std::string_view name_of(OperandKind kind);

/// Factors as the registers of mma.sync hold them, bits in the low end: a [blocks, 16, depth],
/// b [blocks, depth, 8]; c [blocks, 16, 8] in fp32. In one block of four each, c is 0 and -0.
struct MmaOperands {
  std::vector<std::uint32_t> a, b;
  std::vector<float> c;
};
/// A pure function of its arguments: a record of products needs no operands.
[[nodiscard]] MmaOperands mma_operands(ElementType type, OperandKind kind, int blocks);
/// mma_operands() whose factors have formats of their own, of one size.
[[nodiscard]] MmaOperands mma_operands(ElementType left, ElementType right, OperandKind kind,
                                       int blocks);

}  // namespace attest
