#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"

namespace attest {

/// Codes of 8 or 4 bits that a tensor of quantised attention holds.
enum class Code : int {
  none,  ///< none: the tensor has the problem's element type
  e4m3,
  e5m2,
  int8,
  e2m1,  ///< two a byte, as int4
  int4
};

/// Group of elements of an entry's head that share one scale. A scale is a number by which the
/// group's codes, or its numbers of the problem's element type, are multiplied.
enum class Scales : int {
  none,   ///< there are none: codes stand for themselves
  head,   ///< one for all
  block,  ///< one for scale_block rows
  row,    ///< one for each row
  column  ///< one for each column
};

/// Format of scales.
enum class ScaleFormat : int {
  fp32,
  ue8m0  ///< powers of two, a byte each, as the OCP microscaling formats have them
};

/// Rows of a block that shares a scale.
inline constexpr std::int64_t scale_block = 128;

/// Formats and groups of scales in which quantised attention stores Q, K and V.
struct Codes {
  Code q = Code::none, k = Code::e4m3, v = Code::e4m3;
  Scales q_scales = Scales::none, k_scales = Scales::head, v_scales = Scales::head;
  ScaleFormat scale_format = ScaleFormat::fp32;  ///< of all three

  friend bool operator==(const Codes&, const Codes&) = default;
};

/// Codes and scales that a kernel of quantised attention takes, in every combination. Empty: the
/// kernel computes another operation.
struct CodesTaken {
  std::vector<Code> q = {}, k = {}, v = {};
  std::vector<Scales> q_scales = {}, k_scales = {}, v_scales = {};
};

[[nodiscard]] std::span<const std::string_view> names_of_codes();          ///< by enumerator
[[nodiscard]] std::span<const std::string_view> names_of_scales();         ///< by enumerator
[[nodiscard]] std::span<const std::string_view> names_of_scale_formats();  ///< by enumerator
[[nodiscard]] std::string_view name_of(Code code);
[[nodiscard]] std::string_view name_of(Scales scales);

/// The format of a tensor with these codes, of a problem of this element type.
[[nodiscard]] constexpr ElementType format_with(Code code, ElementType element_type) {
  switch (code) {
    case Code::none:
      break;
    case Code::e4m3:
      return ElementType::e4m3;
    case Code::e5m2:
      return ElementType::e5m2;
    case Code::int8:
      return ElementType::int8;
    case Code::e2m1:
      return ElementType::e2m1;
    case Code::int4:
      return ElementType::int4;
  }
  return element_type;
}

[[nodiscard]] constexpr ElementType format_of_scales(const Codes& codes) {
  return codes.scale_format == ScaleFormat::ue8m0 ? ElementType::ue8m0 : ElementType::fp32;
}

}  // namespace attest
