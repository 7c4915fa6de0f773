#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace attest {

/// Storage format of a tensor. LSE is always fp32. From e4m3 to int4 they are codes, which a scale
/// beside them makes numbers of: e4m3 and e5m2 as the OCP 8-bit floating point specification has
/// them (e4m3 has no infinity), int8 whole numbers from -128, which rounding never gives, to 127;
/// e2m1 of the OCP microscaling specification, which has neither infinity nor NaN, and int4, whole
/// numbers from -8, which rounding never gives, to 7. ue8m0 is a format of scales, from the same
/// specification: powers of two from 2^-127 to 2^127, and NaN; no sign, no 0, no infinity. int32 is
/// that of numbers of keys and of counts: on the host they are fp32, which holds all up to 2^24,
/// the longest length.
enum class ElementType : int { fp32, fp16, bf16, e4m3, e5m2, int8, e2m1, int4, ue8m0, int32 };

/// Result of rounding a number past the largest finite one.
enum class Overflow {
  to_infinity,  ///< from half an ulp past it on
  saturates     ///< the largest one of its sign, infinities included
};

/// The numbers of a binary floating-point format, all exactly representable in double: a row of the
/// table of formats.
struct ElementFormat {
  std::string_view name;
  std::string_view safetensors_name;
  std::size_t size_bytes;  ///< of a unit, which strides count: an element, or a byte of several
  int significand_bits;    ///< p, with the implicit bit
  /// Elements in a unit: two of 4 bits, the one of the even column in the low half; else one.
  int elements_in_unit = 1;
  double unit_roundoff;  ///< u = 2^-p: relative error of one rounding to nearest
  double max_finite;
  double min_normal;
  double min_subnormal;
  Overflow overflow;
  /// Code of a NaN whose payload no arithmetic produces. Nothing: a format of so few codes that
  /// each may be an answer.
  std::optional<std::uint32_t> poison;
};

/// Throws std::logic_error. Stands at the end of a switch over formats, so that the compiler names
/// a format without a case; reached only if code is asked for a format that it has no version for.
[[noreturn]] void no_version_for(ElementType type);

[[nodiscard]] const ElementFormat& format_of(ElementType type);
/// Formats that stand for themselves: fp32, fp16, bf16.
[[nodiscard]] std::span<const ElementType> all_element_types();
/// Formats of codes, of 8 and of 4 bits.
[[nodiscard]] std::span<const ElementType> code_types();
[[nodiscard]] constexpr bool is_code(ElementType type) {
  return type >= ElementType::e4m3 && type <= ElementType::int4;
}
/// Whole numbers in two's complement: there is one 0, and a number without its negative.
[[nodiscard]] constexpr bool is_whole(ElementType type) {
  return type == ElementType::int8 || type == ElementType::int4 || type == ElementType::int32;
}
[[nodiscard]] constexpr bool has_nan(ElementType type) {
  return !is_whole(type) && type != ElementType::e2m1;
}
/// Bits of an element.
[[nodiscard]] int bits_of(ElementType type);
/// Bit patterns of an element of 16 bits or fewer: 16 of 4 bits, 256 of 8.
[[nodiscard]] std::uint32_t pattern_count(ElementType type);
/// Units that a row of so many elements takes.
[[nodiscard]] std::int64_t units_of(ElementType type, std::int64_t columns);
/// Element type (fp32, fp16 or bf16) of a name. Throws InvalidInput for another name, listing
/// theirs.
[[nodiscard]] ElementType element_type_from_name(std::string_view name);

/// Rounds to the nearest value of the format, ties to even, once (no double rounding through fp32).
/// Subnormals are kept; ElementFormat::overflow says what becomes of values past max_finite; NaN
/// stays NaN, and is 0 where the format has none. What is below ue8m0's smallest number, 0 and all
/// negative ones too, becomes that.
[[nodiscard]] double round_to(ElementType type, double value);

/// Bit pattern, in the low bits, of a value that is exactly representable in the format. An
/// infinity in a format without is its NaN; where there is none either, both are 0.
[[nodiscard]] std::uint32_t encode(ElementType type, float value);
/// Value of a bit pattern, in the low bits: exact, inverse of encode().
[[nodiscard]] float decode(ElementType type, std::uint32_t bits);
/// ElementFormat::poison: memory still holding it was never written. Throws std::logic_error for a
/// format that has none.
[[nodiscard]] std::uint32_t poison_bits(ElementType type);

}  // namespace attest
