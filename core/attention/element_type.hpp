#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace attest {

/// Storage format of Q, K, V and O. LSE is always fp32.
enum class ElementType : int { fp32, fp16, bf16 };

/// The numbers of a binary floating-point format, all exactly representable in double: a row of the
/// table of formats.
struct ElementFormat {
  std::string_view name;
  std::string_view safetensors_name;
  std::size_t size_bytes;
  int significand_bits;  ///< p, with the implicit bit
  double unit_roundoff;  ///< u = 2^-p: relative error of one rounding to nearest
  double max_finite;
  double min_normal;
  double min_subnormal;
  /// Code of a NaN whose payload no arithmetic produces. Nothing: a format of so few codes that
  /// each may be an answer.
  std::optional<std::uint32_t> poison;
};

/// For the end of a switch over formats, where the compiler names a format that has no case: code
/// without a version for a format is not asked. Throws std::logic_error.
[[noreturn]] void no_version_for(ElementType type);

[[nodiscard]] const ElementFormat& format_of(ElementType type);
[[nodiscard]] std::span<const ElementType> all_element_types();
/// Throws InvalidInput for an unknown name, listing those of all formats.
[[nodiscard]] ElementType element_type_from_name(std::string_view name);

/// Rounds to the nearest value of the format, ties to even, once (no double rounding through fp32).
/// Subnormals are kept; values past max_finite + half an ulp become infinity; NaN stays NaN.
[[nodiscard]] double round_to(ElementType type, double value);

/// Bit pattern of a value that is exactly representable in the format (low 16 bits for the 16-bit
/// formats).
[[nodiscard]] std::uint32_t encode(ElementType type, float value);
/// Exact.
[[nodiscard]] float decode(ElementType type, std::uint32_t bits);
/// ElementFormat::poison: memory still holding it was never written. Throws std::logic_error for a
/// format that has none.
[[nodiscard]] std::uint32_t poison_bits(ElementType type);

}  // namespace attest
