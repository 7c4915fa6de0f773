#include "cpu_reference/rounding/split_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu_reference/forward/online_softmax_rows.hpp"

namespace attest {
namespace {

ElementType type_of(const Parts& how, ElementType whole) {
  switch (how.format) {
    case Parts::Format::fp16:
      return ElementType::fp16;
    case Parts::Format::bf16:
      return ElementType::bf16;
    case Parts::Format::tf32:
      return ElementType::fp32;  // the same exponents
    case Parts::Format::whole:
      break;
  }
  return whole;
}

float part_of(Parts::Format format, bool is_cut, float x) {
  if (!std::isfinite(x)) return x;
  if (format == Parts::Format::tf32) {
    const std::uint32_t half = is_cut ? 0 : 0x1000;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + half) & 0xffffe000U);
  }
  const ElementType type = type_of({.format = format}, ElementType::fp32);
  const auto nearest = static_cast<float>(round_to(type, static_cast<double>(x)));
  if (!is_cut || !(std::abs(nearest) > std::abs(x))) return nearest;
  return decode(type, encode(type, nearest) - 1);
}

}  // namespace

int scaling_exponent(const Parts& how, std::span<const float> values, double factor) {
  if (!(how.scaled_to > 0)) return 0;
  float largest = 0;
  for (const float x : values) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double scaled = static_cast<double>(largest) * factor;
  return scaled > 0 ? std::ilogb(how.scaled_to) - std::ilogb(scaled) : 0;
}

std::vector<std::vector<float>> split(const Parts& how, std::span<const float> values,
                                      int exponent) {
  std::vector<float> rest;
  for (const float x : values) rest.push_back(std::ldexp(x, exponent));
  if (how.format == Parts::Format::whole) return {rest};
  std::vector<std::vector<float>> parts;
  for (int i = 0; i < how.count; ++i) {
    auto& part = parts.emplace_back();
    for (float& x : rest) {
      part.push_back(part_of(how.format, i >= how.count - how.cut, x));
      x -= part.back();
    }
  }
  return parts;
}

SplitOperand::SplitOperand(const Parts& parts_, ElementType type, std::span<const float> values,
                           std::int64_t lanes)
    : how(parts_), exponent(scaling_exponent(parts_, values)) {
  for (auto& part : split(how, values, exponent)) {
    parts.emplace_back(std::move(part), lanes, type_of(how, type));
  }
}

void accumulate_split_product(const Accumulation& accumulation, std::span<const float> left,
                              ElementType left_type, int left_exponent, const SplitOperand& right,
                              std::int64_t first, std::span<float> sum) {
  const int exponent = left_exponent + right.exponent;
  const auto scale = [&](int power) {
    if (power == 0) return;
    for (float& x : sum) x = std::ldexp(x, power);
  };
  scale(exponent);
  const auto parts = split(right.how, left, left_exponent);
  const ElementType type = type_of(right.how, left_type);
  for (std::size_t total = parts.size(); total-- > 0;) {
    for (std::size_t i = 0; i <= total; ++i) {
      accumulate_product(accumulation, parts[i], type, right.parts[total - i], first, sum);
    }
  }
  scale(-exponent);
}

void accumulate_product(const Accumulation& accumulation, std::span<const float> left,
                        ElementType left_type, const ProductOperand& right, std::int64_t first,
                        std::span<float> sum) {
  if (accumulation.kind == Accumulation::Kind::fp32_fma) {
    multiply_accumulate(left, right.row(first), right.lanes(), sum);
  } else {
    accumulate_tensor_core(accumulation, left, left_type, right, first, sum);
  }
}

}  // namespace attest
