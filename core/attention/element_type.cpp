#include "core/attention/element_type.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr std::array<ElementType, 3> types{ElementType::fp32, ElementType::fp16, ElementType::bf16};

ElementFormat make_format(std::string_view name, std::size_t size_bytes, int significand_bits,
                          int max_exponent) {
  const int min_exponent = 1 - max_exponent;
  return {.name = name,
          .size_bytes = size_bytes,
          .significand_bits = significand_bits,
          .unit_roundoff = std::ldexp(1.0, -significand_bits),
          .max_finite = std::ldexp(2.0 - std::ldexp(1.0, 1 - significand_bits), max_exponent),
          .min_normal = std::ldexp(1.0, min_exponent),
          .min_subnormal = std::ldexp(1.0, min_exponent - significand_bits + 1)};
}

}  // namespace

const ElementFormat& format_of(ElementType type) {
  static const std::array<ElementFormat, 3> formats{make_format("fp32", 4, 24, 127),
                                                    make_format("fp16", 2, 11, 15),
                                                    make_format("bf16", 2, 8, 127)};
  return formats[static_cast<std::size_t>(type)];
}

std::span<const ElementType> all_element_types() {
  return types;
}

ElementType element_type_from_name(std::string_view name) {
  for (const ElementType type : types) {
    if (format_of(type).name == name) return type;
  }
  throw InvalidInput(fmt::format("element type '{}' is unknown; allowed: fp32, fp16, bf16", name));
}

double round_to(ElementType type, double value) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const ElementFormat& format = format_of(type);
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const double ulp =
      std::max(std::ldexp(1.0, exponent - format.significand_bits), format.min_subnormal);
  // The quotient is exact (a power of two) and nearbyint rounds ties to even in the default mode.
  const double rounded = std::nearbyint(value / ulp) * ulp;
  if (std::abs(rounded) > format.max_finite) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

std::uint32_t encode(ElementType type, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (type == ElementType::fp32) return bits;
  if (type == ElementType::bf16) {
    // A NaN whose payload lies in the dropped half must not become infinity.
    return std::isnan(value) ? (bits >> 16U) | 0x40U : bits >> 16U;
  }
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  if (std::isnan(value)) return sign | 0x7e00U | ((bits >> 13U) & 0x1ffU);
  if (std::isinf(value)) return sign | 0x7c00U;
  const float magnitude = std::abs(value);
  if (magnitude < static_cast<float>(format_of(type).min_normal)) {
    return sign | static_cast<std::uint32_t>(std::ldexp(magnitude, 24));
  }
  return sign | (((bits & 0x7fffffffU) - (112U << 23U)) >> 13U);
}

float decode(ElementType type, std::uint32_t bits) {
  if (type == ElementType::fp32) return std::bit_cast<float>(bits);
  if (type == ElementType::bf16) return std::bit_cast<float>((bits & 0xffffU) << 16U);
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (magnitude << 13U));
  if (magnitude < 0x400U) {
    const float value = std::ldexp(static_cast<float>(magnitude), -24);
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13U) + (112U << 23U)));
}

std::uint32_t poison_bits(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return 0x7fdeadb5U;
    case ElementType::fp16:
      return 0x7f5aU;
    case ElementType::bf16:
      return 0x7fdaU;
  }
  return 0;
}

}  // namespace attest
