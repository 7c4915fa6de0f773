#include "core/attention/parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace attest {
namespace {

TEST(Parts, WhatIsLeftOfANumberIsAtMostTheRest) {
  // Two parts of TF32: hi to nearest, lo cut.
  const Parts split{.format = Parts::Format::tf32, .count = 2, .cut = 1};
  const auto bits = [](float x, std::uint32_t half) {
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + half) & 0xffffe000U);
  };
  double first = 0, second = 0;
  for (std::uint32_t i = 0; i < 1U << 23U; i += 3) {
    const auto x = std::bit_cast<float>(0x3f800000U + i);
    const float hi = bits(x, 0x1000), lo = bits(x - hi, 0);
    first = std::max(first, std::abs(static_cast<double>(x - hi) / static_cast<double>(x)));
    second = std::max(second, std::abs(static_cast<double>(x - hi - lo) / static_cast<double>(x)));
  }
  EXPECT_LE(first, rest_of(split, 1));
  EXPECT_LE(second, rest_of(split, 2));
  EXPECT_GT(first, rest_of(split, 1) / 2);
  EXPECT_GT(second, rest_of(split, 2) / 2);
  EXPECT_EQ(rest_of(split, 2), 0x1p-23);
  // Three parts of bf16 have more bits than fp32.
  EXPECT_EQ(rest_of({.format = Parts::Format::bf16, .count = 3}, 3), 0);
  EXPECT_EQ(rest_of({.format = Parts::Format::fp16, .count = 2}, 2), 0x1p-23);
}

}  // namespace
}  // namespace attest
