#include "gpu/arithmetic/mma_operands.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

/// Positions of the parts of a number. TF32 lies in the upper 19 bits of an fp32 register; what
/// stands below is drawn too, since the tensor core must not look at it.
struct Format {
  int exponent_bits, fraction_bits, unused_bits;
  bool has_infinity = true;  ///< false: the largest exponent is a number's, but for the last code

  [[nodiscard]] int largest_exponent() const { return (1 << exponent_bits) - 1; }  // infinity, NaN
  [[nodiscard]] int bias() const { return largest_exponent() / 2; }
  [[nodiscard]] std::uint32_t number(bool is_negative, int biased, std::uint32_t fraction) const {
    const int stored_bits = fraction_bits + unused_bits;
    const auto exponent = static_cast<std::uint32_t>(std::clamp(biased, 0, largest_exponent()));
    return std::uint32_t{is_negative} << (exponent_bits + stored_bits) | exponent << stored_bits |
           (fraction & ((1U << stored_bits) - 1));
  }
};

constexpr Format fp32{8, 23, 0};

Format format_of_factor(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return {5, 10, 0};
    case ElementType::bf16:
      return {8, 7, 0};
    case ElementType::fp32:  // TF32
      return {8, 10, 13};
    case ElementType::e4m3:
      return {4, 3, 0, false};
    case ElementType::e5m2:
      return {5, 2, 0};
    case ElementType::int8:
    case ElementType::e2m1:
    case ElementType::int4:
    case ElementType::ue8m0:
    case ElementType::int32:
      break;
  }
  no_version_for(type);
}

/// The random bits of one number, taken piece by piece.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t stream, std::size_t index)
      : bits_(random_bits(seed, stream, index)) {}
  int below(int bound) {  // bound up to 2^12; three of these and a fraction fit
    const auto piece =
        static_cast<int>((bits_ & 0xfffU) * static_cast<std::uint64_t>(bound) >> 12U);
    bits_ >>= 12U;
    return piece;
  }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool coin() { return below(2) != 0; }
  std::uint32_t fraction() {  // 24 bits
    const auto bits = static_cast<std::uint32_t>(bits_ & 0xffffffU);
    bits_ >>= 24U;
    return bits;
  }

 private:
  std::uint64_t bits_;
};

/// An infinity, a NaN or a zero.
std::uint32_t special(const Format& f, bool is_negative, Draw& draw) {
  const int which = draw.below(4);
  if (!f.has_infinity)
    return f.number(is_negative, which < 2 ? f.largest_exponent() : 0, which < 2 ? 7 : 0);
  const std::uint32_t quiet = 1U << (f.fraction_bits + f.unused_bits - 1);
  return f.number(is_negative, which < 2 ? f.largest_exponent() : 0, which == 1 ? quiet : 0);
}

std::uint32_t factor(const Format& f, OperandKind kind, bool is_left, Draw& draw) {
  const int top = f.largest_exponent() - 1;
  const std::uint32_t fraction = draw.fraction();
  const bool is_negative = (fraction >> 23U) != 0;
  int exponent = 0;
  switch (kind) {
    case OperandKind::ordinary:
      exponent = f.bias() - std::countr_zero(static_cast<std::uint32_t>(draw.between(1, 255)));
      break;
    case OperandKind::near:
    case OperandKind::cancelling:
      exponent = f.bias() + draw.between(-2, 2);
      break;
    case OperandKind::straddling:
      exponent = f.bias() + draw.between(-7, 7);
      break;
    case OperandKind::any_size: {
      const int reach = std::min(f.bias(), 63);  // products stay within fp32
      exponent = f.bias() + draw.between(-reach, reach);
      break;
    }
    case OperandKind::subnormal:
      exponent = draw.coin() ? draw.between(0, 2) : draw.between(0, f.bias());
      break;
    case OperandKind::huge:
      exponent = is_left ? draw.between(top - 2, top) : f.bias() + draw.between(-5, 1);
      break;
    case OperandKind::special:
      if (draw.below(24) == 0) return special(f, is_negative, draw);
      exponent = f.bias() + draw.between(-2, 2);
      break;
    case OperandKind::zeros:  // small ones meet large zeros' partners
      if (draw.coin()) return f.number(is_negative, 0, 0);
      exponent = is_left ? draw.between(1, f.bias()) : draw.between(f.bias(), top);
      break;
  }
  return f.number(is_negative, exponent, fraction);
}

float addend(const Format& f, OperandKind kind, Draw& draw) {
  const std::uint32_t fraction = draw.fraction();
  const bool is_negative = draw.coin();
  // What one product's size can be, roughly, and for fp16 the ends of fp32 besides.
  const int top = std::min(2 * (f.largest_exponent() - 1 - f.bias()), 127);
  const int bottom = std::max(2 * (1 - f.bias() - f.fraction_bits), -149);
  int exponent = 0;
  switch (kind) {
    case OperandKind::ordinary:
      exponent = draw.between(-3, 3);
      break;
    case OperandKind::near:
      exponent = draw.between(-4, 6);
      break;
    case OperandKind::special:
      if (draw.below(24) == 0) return std::bit_cast<float>(special(fp32, is_negative, draw));
      exponent = draw.between(-4, 6);
      break;
    case OperandKind::straddling:
      exponent = draw.between(-14, 14);
      break;
    case OperandKind::any_size:
      exponent = draw.between(bottom, top);
      break;
    case OperandKind::cancelling:
      exponent = draw.between(-30, 4);
      break;
    case OperandKind::subnormal:
      exponent = draw.coin() ? draw.between(-130, -120) : bottom + draw.between(0, 20);
      break;
    case OperandKind::huge:
      exponent = draw.coin() ? draw.between(124, 127) : top - draw.between(0, 4);
      break;
    case OperandKind::zeros:
      exponent = draw.between(std::max(-f.bias(), -126), 0);
      break;
  }
  return std::bit_cast<float>(fp32.number(is_negative, exponent + 127, fraction));
}

/// Makes neighbours along the depth cancel: the second product of a pair is the first, negated,
/// with its last bits changed in one pair of four.
void cancel_pairs(const Format& f, const Format& of_right, int depth, std::uint64_t seed,
                  int blocks, MmaOperands& of) {
  const auto d = static_cast<std::size_t>(depth);
  for (std::size_t row = 0; row < static_cast<std::size_t>(blocks) * 16; ++row) {
    for (std::size_t k = 0; k < d; k += 2) {
      Draw draw(seed, 4, row * d + k);
      of.a[row * d + k + 1] = of.a[row * d + k];
      if (draw.below(4) == 0)
        of.a[row * d + k + 1] ^= static_cast<std::uint32_t>(draw.between(1, 3)) << f.unused_bits;
    }
  }
  const std::uint32_t sign =
      1U << (of_right.exponent_bits + of_right.fraction_bits + of_right.unused_bits);
  for (std::size_t block = 0; block < static_cast<std::size_t>(blocks); ++block) {
    for (std::size_t k = 0; k < d; k += 2) {
      for (std::size_t n = 0; n < 8; ++n)
        of.b[(block * d + k + 1) * 8 + n] = of.b[(block * d + k) * 8 + n] ^ sign;
    }
  }
}

}  // namespace

std::string_view name_of(OperandKind kind) {
  constexpr std::array<std::string_view, operand_kinds> names{
      "ordinary",  "near", "straddling", "any_size", "cancelling",
      "subnormal", "huge", "special",    "zeros"};
  return names[static_cast<std::size_t>(kind)];
}

MmaOperands mma_operands(ElementType type, OperandKind kind, int blocks) {
  return mma_operands(type, type, kind, blocks);
}

MmaOperands mma_operands(ElementType left, ElementType right, OperandKind kind, int blocks) {
  const Format f = format_of_factor(left), of_right = format_of_factor(right);
  const auto depth = static_cast<std::size_t>(mma_depth(left));
  const auto count = static_cast<std::size_t>(blocks);
  const std::uint64_t seed =
      1000 + 100 * static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(kind);
  MmaOperands of{std::vector<std::uint32_t>(count * 16 * depth),
                 std::vector<std::uint32_t>(count * depth * 8), std::vector<float>(count * 128)};
  const auto fill = [&](std::vector<std::uint32_t>& bits, bool is_left) {
    for (std::size_t i = 0; i < bits.size(); ++i) {
      Draw draw(seed, is_left ? 1 : 2, i);
      bits[i] = factor(is_left ? f : of_right, kind, is_left, draw);
    }
  };
  fill(of.a, true);
  fill(of.b, false);
  for (std::size_t i = 0; i < of.c.size(); ++i) {
    Draw draw(seed, 3, i);
    const std::size_t block = i / 128;
    of.c[i] = block % 4 == 0 ? 0.0F : block % 4 == 1 ? -0.0F : addend(f, kind, draw);
  }
  if (kind == OperandKind::cancelling) cancel_pairs(f, of_right, mma_depth(left), seed, blocks, of);
  return of;
}

}  // namespace attest
