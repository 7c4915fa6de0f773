#include "core/attention/element_type.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr std::array types{ElementType::fp32, ElementType::fp16, ElementType::bf16};
constexpr std::array codes{ElementType::e4m3, ElementType::e5m2, ElementType::int8,
                           ElementType::e2m1, ElementType::int4};

struct Sizes {
  std::size_t bytes;
  int significand_bits, max_exponent;
};

ElementFormat make_format(std::string_view name, std::string_view safetensors_name,
                          const Sizes& sizes, std::optional<std::uint32_t> poison) {
  const int bits = sizes.significand_bits, min_exponent = 1 - sizes.max_exponent;
  return {.name = name,
          .safetensors_name = safetensors_name,
          .size_bytes = sizes.bytes,
          .significand_bits = bits,
          .unit_roundoff = std::ldexp(1.0, -bits),
          .max_finite = std::ldexp(2.0 - std::ldexp(1.0, 1 - bits), sizes.max_exponent),
          .min_normal = std::ldexp(1.0, min_exponent),
          .min_subnormal = std::ldexp(1.0, min_exponent - bits + 1),
          .overflow = Overflow::to_infinity,
          .poison = poison};
}

/// The exponent that stands for infinity elsewhere holds numbers but for its last code, NaN.
ElementFormat make_e4m3() {
  ElementFormat format = make_format("e4m3", "F8_E4M3", {1, 4, 7}, std::nullopt);
  format.max_finite = 448;
  format.overflow = Overflow::saturates;
  return format;
}

ElementFormat make_e5m2() {
  ElementFormat format = make_format("e5m2", "F8_E5M2", {1, 3, 15}, std::nullopt);
  format.overflow = Overflow::saturates;
  return format;
}

/// Every exponent is one of numbers.
ElementFormat make_e2m1() {
  ElementFormat format = make_format("e2m1", "F4", {1, 2, 1}, std::nullopt);
  format.min_normal = 1;
  format.min_subnormal = 0.5;
  format.max_finite = 6;
  format.overflow = Overflow::saturates;
  format.elements_in_unit = 2;
  return format;
}

/// All numbers are multiples of 1: as if they were subnormal.
ElementFormat make_whole(std::string_view name, std::string_view safetensors_name, int bits,
                         std::optional<std::uint32_t> poison = std::nullopt) {
  const double end = std::ldexp(1.0, bits - 1);
  return {.name = name,
          .safetensors_name = safetensors_name,
          .size_bytes = static_cast<std::size_t>(std::max(bits / 8, 1)),
          .significand_bits = bits,
          .elements_in_unit = std::max(8 / bits, 1),
          .unit_roundoff = std::ldexp(1.0, -bits),
          .max_finite = end - 1,
          .min_normal = end,
          .min_subnormal = 1,
          .overflow = Overflow::saturates,
          .poison = poison};
}

/// An exponent and nothing else.
ElementFormat make_ue8m0() {
  return {.name = "ue8m0",
          .safetensors_name = "F8_E8M0",
          .size_bytes = 1,
          .significand_bits = 1,
          .unit_roundoff = 0.5,
          .max_finite = 0x1p127,
          .min_normal = 0x1p-127,
          .min_subnormal = 0x1p-127,
          .overflow = Overflow::saturates,
          .poison = std::nullopt};
}

/// What the codes of a format's largest exponent are besides numbers.
enum class Special {
  ieee,         ///< infinities and NaN as IEEE 754 has them, and no numbers
  last_is_nan,  ///< numbers but for the last one
  none          ///< numbers
};

/// A format of a sign, an exponent as wide as fp32's or narrower, and a fraction.
template <int exponent_bits, int fraction_bits, Special special = Special::ieee>
struct Ieee {
  static constexpr bool last_is_nan = special == Special::last_is_nan;
  static constexpr int shift = 23 - fraction_bits;
  static constexpr std::uint32_t exponents = ((1U << exponent_bits) - 1) << fraction_bits;
  static constexpr std::uint32_t fractions = (1U << fraction_bits) - 1;
  static constexpr std::uint32_t quiet = 1U << (fraction_bits - 1);
  /// Bias of fp32's exponent less that of this format.
  static constexpr std::uint32_t rebias = 127U - ((1U << (exponent_bits - 1)) - 1);
  /// Exponent of the least significant bit of a subnormal number.
  static constexpr int least = 2 - (1 << (exponent_bits - 1)) - fraction_bits;

  static std::uint32_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 31U << (exponent_bits + fraction_bits);
    if (special == Special::none && !std::isfinite(value)) return 0;
    // A NaN whose payload lies in the dropped bits must not become infinity.
    if (last_is_nan && !std::isfinite(value)) return sign | exponents | fractions;
    if (std::isnan(value)) return sign | exponents | quiet | (bits & 0x7fffffU) >> shift;
    if (std::isinf(value)) return sign | exponents;
    const float magnitude = std::abs(value);
    if (magnitude < std::ldexp(1.0F, least + fraction_bits)) {
      return sign | static_cast<std::uint32_t>(std::ldexp(magnitude, -least));
    }
    return sign | ((bits & 0x7fffffffU) - (rebias << 23U)) >> shift;
  }

  static float decode(std::uint32_t code) {
    const std::uint32_t sign = (code >> (exponent_bits + fraction_bits) & 1U) << 31U;
    const std::uint32_t magnitude = code & (exponents | fractions);
    if (special != Special::none && magnitude >= exponents &&
        (!last_is_nan || magnitude == (exponents | fractions))) {
      return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & fractions) << shift);
    }
    if (magnitude <= fractions) {
      const float value = std::ldexp(static_cast<float>(magnitude), least);
      return sign != 0 ? -value : value;
    }
    return std::bit_cast<float>(sign | ((magnitude << shift) + (rebias << 23U)));
  }
};
using Half = Ieee<5, 10>;
using Bfloat = Ieee<8, 7>;
using E4m3 = Ieee<4, 3, Special::last_is_nan>;
using E5m2 = Ieee<5, 2>;
using E2m1 = Ieee<2, 1, Special::none>;

/// Two's complement.
template <int bits>
struct Whole {
  static constexpr std::uint32_t mask = (1U << bits) - 1, sign = 1U << (bits - 1);

  static std::uint32_t encode(float value) {
    return std::isfinite(value) ? static_cast<std::uint32_t>(static_cast<int>(value)) & mask : 0;
  }
  static float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<int>((code & mask) ^ sign) - static_cast<int>(sign));
  }
};

/// Two's complement of 32 bits, as far as fp32 holds it.
struct Int32 {
  static std::uint32_t encode(float value) {
    return std::isfinite(value) ? static_cast<std::uint32_t>(static_cast<std::int64_t>(value)) : 0;
  }
  static float decode(std::uint32_t code) {
    return static_cast<float>(static_cast<std::int32_t>(code));
  }
};

/// fp32's exponent, whose least one is that of 2^-127 among its subnormal numbers.
struct Ue8m0 {
  static std::uint32_t encode(float value) {
    if (std::isnan(value)) return 0xffU;
    return std::bit_cast<std::uint32_t>(value) >> 23U & 0xffU;
  }
  static float decode(std::uint32_t code) {
    code &= 0xffU;
    if (code == 0xffU) return std::numeric_limits<float>::quiet_NaN();
    return code == 0 ? 0x1p-127F : std::bit_cast<float>(code << 23U);
  }
};

}  // namespace

void no_version_for(ElementType type) {
  throw std::logic_error(fmt::format("there is no version for {}", format_of(type).name));
}

const ElementFormat& format_of(ElementType type) {
  static const std::array<ElementFormat, types.size() + codes.size() + 2> formats{
      make_format("fp32", "F32", {4, 24, 127}, 0x7fdeadb5U),
      make_format("fp16", "F16", {2, 11, 15}, 0x7f5aU),
      make_format("bf16", "BF16", {2, 8, 127}, 0x7fdaU),
      make_e4m3(),
      make_e5m2(),
      make_whole("int8", "I8", 8),
      make_e2m1(),
      make_whole("int4", {}, 4),
      make_ue8m0(),
      make_whole("int32", "I32", 32, 0x80badbadU)};
  return formats[static_cast<std::size_t>(type)];
}

std::span<const ElementType> all_element_types() {
  return types;
}

std::span<const ElementType> code_types() {
  return codes;
}

int bits_of(ElementType type) {
  const ElementFormat& format = format_of(type);
  return 8 * static_cast<int>(format.size_bytes) / format.elements_in_unit;
}

std::uint32_t pattern_count(ElementType type) {
  return 1U << static_cast<unsigned>(bits_of(type));
}

std::int64_t units_of(ElementType type, std::int64_t columns) {
  const int in_unit = format_of(type).elements_in_unit;
  return (columns + in_unit - 1) / in_unit;
}

ElementType element_type_from_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ElementType type : types) {
    if (format_of(type).name == name) return type;
    names.push_back(format_of(type).name);
  }
  throw InvalidInput(
      fmt::format("element type '{}' is unknown; allowed: {}", name, fmt::join(names, ", ")));
}

double round_to(ElementType type, double value) {
  if (std::isnan(value)) return has_nan(type) ? value : 0;
  const ElementFormat& format = format_of(type);
  if (type == ElementType::ue8m0 && !(value > format.min_normal)) return format.min_normal;
  if (value == 0.0) return is_whole(type) ? 0 : value;  // whole numbers have no -0
  if (std::isinf(value)) {
    return format.overflow == Overflow::saturates ? std::copysign(format.max_finite, value) : value;
  }
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const double ulp =
      std::max(std::ldexp(1.0, exponent - format.significand_bits), format.min_subnormal);
  // The quotient is exact (a power of two) and nearbyint rounds ties to even in the default mode.
  const double rounded = std::nearbyint(value / ulp) * ulp;
  if (std::abs(rounded) > format.max_finite) {
    return std::copysign(format.overflow == Overflow::saturates
                             ? format.max_finite
                             : std::numeric_limits<double>::infinity(),
                         value);
  }
  return is_whole(type) ? rounded + 0.0 : rounded;
}

std::uint32_t encode(ElementType type, float value) {
  switch (type) {
    case ElementType::fp32:
      return std::bit_cast<std::uint32_t>(value);
    case ElementType::fp16:
      return Half::encode(value);
    case ElementType::bf16:
      return Bfloat::encode(value);
    case ElementType::e4m3:
      return E4m3::encode(value);
    case ElementType::e5m2:
      return E5m2::encode(value);
    case ElementType::int8:
      return Whole<8>::encode(value);
    case ElementType::e2m1:
      return E2m1::encode(value);
    case ElementType::int4:
      return Whole<4>::encode(value);
    case ElementType::ue8m0:
      return Ue8m0::encode(value);
    case ElementType::int32:
      return Int32::encode(value);
  }
  no_version_for(type);
}

float decode(ElementType type, std::uint32_t bits) {
  switch (type) {
    case ElementType::fp32:
      return std::bit_cast<float>(bits);
    case ElementType::fp16:
      return Half::decode(bits);
    case ElementType::bf16:
      return Bfloat::decode(bits);
    case ElementType::e4m3:
      return E4m3::decode(bits);
    case ElementType::e5m2:
      return E5m2::decode(bits);
    case ElementType::int8:
      return Whole<8>::decode(bits);
    case ElementType::e2m1:
      return E2m1::decode(bits);
    case ElementType::int4:
      return Whole<4>::decode(bits);
    case ElementType::ue8m0:
      return Ue8m0::decode(bits);
    case ElementType::int32:
      return Int32::decode(bits);
  }
  no_version_for(type);
}

std::uint32_t poison_bits(ElementType type) {
  const std::optional<std::uint32_t> poison = format_of(type).poison;
  if (poison) return *poison;
  throw std::logic_error(fmt::format(
      "no code of {} says that nothing was written; two launches on different fills would",
      format_of(type).name));
}

}  // namespace attest
