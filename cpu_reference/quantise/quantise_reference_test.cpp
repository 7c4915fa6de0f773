#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/attention/quantiser.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/quantise.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

Problem numbers_problem(Code code, Scales kind) {
  Problem p{.operation = &quantise_operation,
            .batch = 2,
            .query_heads = 2,
            .kv_heads = 2,
            .key_len = 150,
            .head_dim = 12};
  p.codes.k = code;
  p.codes.k_scales = kind;
  return p;
}

Answer defined_answer(const Problem& p, const Inputs& inputs) {
  return reference_of(quantise_operation).exact(p, inputs, DefinedRoundings{});
}

bool is_certified(const Problem& p, const Inputs& inputs, const Answer& answer) {
  const Certificate certificate =
      reference_of(quantise_operation).certify(p, inputs, answer, 5, 40);
  EXPECT_EQ(certificate.rows, 40);
  return certificate.holds();
}

TEST(QuantiseReference, IsCertifiedForEveryCodeAndKindOfScaleInEveryFamilyOfItsOwn) {
  for (const Code code : {Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4}) {
    for (const Scales kind :
         {Scales::none, Scales::head, Scales::block, Scales::row, Scales::column}) {
      Problem p = numbers_problem(code, kind);
      for (const InputFamily& family : all_input_families()) {
        if (family.operation != &quantise_operation) continue;
        p.codes.scale_format =
            p.codes.scale_format == ScaleFormat::fp32 ? ScaleFormat::ue8m0 : ScaleFormat::fp32;
        for (const double magnitude : family.magnitudes) {
          const Inputs inputs =
              make_inputs(p, {.family = family.name, .seed = 3, .magnitude = magnitude});
          EXPECT_TRUE(is_certified(p, inputs, defined_answer(p, inputs)))
              << to_string(p) << ' ' << family.name << ' ' << magnitude;
        }
      }
    }
  }
}

TEST(QuantiseReference, NeitherANeighbouringCodeNorScaleIsCertified) {
  const Problem p = numbers_problem(Code::e4m3, Scales::row);
  const Inputs inputs = make_inputs(p, {.family = "normal", .seed = 3});
  Answer codes = defined_answer(p, inputs), scales = codes;
  for (double& code : codes[quantising::codes].value.values()) {
    code = decode(ElementType::e4m3, encode(ElementType::e4m3, static_cast<float>(code)) ^ 1U);
  }
  for (double& scale : scales[quantising::scales].value.values()) {
    scale = std::nextafter(static_cast<float>(scale), 0.0F);
  }
  EXPECT_FALSE(is_certified(p, inputs, codes));
  EXPECT_FALSE(is_certified(p, inputs, scales));
}

TEST(QuantiseReference, NeitherTwiceNorHalfAPowerOfTwoIsCertified) {
  for (const Code code : {Code::e4m3, Code::int4}) {
    for (const double factor : {0.5, 2.0}) {
      Problem p = numbers_problem(code, Scales::row);
      p.codes.scale_format = ScaleFormat::ue8m0;
      const Inputs inputs = make_inputs(p, {.family = "normal", .seed = 3});
      Answer answer = defined_answer(p, inputs);
      EXPECT_TRUE(is_certified(p, inputs, answer));
      for (double& scale : answer[quantising::scales].value.values()) scale *= factor;
      for (double& number : answer[quantising::codes].value.values()) {
        number = round_to(format_with(code, p.element_type), number / factor);
      }
      EXPECT_FALSE(is_certified(p, inputs, answer)) << factor;
    }
  }
}

// S9 at a fixed scale: the second pass finds the codes that it made, if it finds the scale.
TEST(Quantiser, OfItsOwnNumbersGivesItsCodesWhereItFindsTheScaleAgain) {
  const auto all = [](std::int64_t) { return std::int64_t{150}; };
  for (const Code code : {Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4}) {
    const Problem p = numbers_problem(code, Scales::row);
    const ElementType format = format_with(code, p.element_type);
    const Inputs inputs = make_inputs(p, {.family = "normal", .seed = 3});
    const QuantisedTensor made = quantise(inputs[quantising::x], format, Scales::row, all);
    const Tensor<double> numbers = dequantise(made.codes, made.scales, Scales::row);
    Tensor<float> back(numbers.shape());
    for (std::size_t i = 0; i < back.values().size(); ++i) {
      back.values()[i] = static_cast<float>(numbers.values()[i]);
    }
    const QuantisedTensor again = quantise(back, format, Scales::row, all);
    int same_scales = 0;
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t n = 0; n < 150; ++n) {
        if (made.scales.at(1, h, n, 0) != again.scales.at(1, h, n, 0)) continue;
        ++same_scales;
        for (std::int64_t c = 0; c < 12; ++c) {
          EXPECT_EQ(made.codes.at(1, h, n, c), again.codes.at(1, h, n, c)) << n << ", " << c;
        }
      }
    }
    EXPECT_GT(same_scales, 100) << name_of(code);
  }
}

TEST(Quantiser, DividesOnceInFp32AndRoundsThatOnce) {
  // Some quotient lies above a tie in double, and at it in fp32.
  const float scale = 3.0F / 127, tie = 62.5F;
  float x = tie * scale * (1 - 0x1p-20F);
  while (static_cast<double>(x) / static_cast<double>(scale) <= tie) x = std::nextafter(x, 4.0F);
  ASSERT_EQ(x / scale, tie);
  Tensor<float> values(Shape{1, 1, 1, 2}, 3.0F);
  values.at(0, 0, 0, 1) = x;
  const auto all = [](std::int64_t) { return std::int64_t{1}; };
  const QuantisedTensor made = quantise(values, ElementType::int8, Scales::head, all);
  ASSERT_EQ(made.scales.at(0, 0, 0, 0), scale);
  EXPECT_EQ(made.codes.at(0, 0, 0, 1), 62);
}

TEST(Quantiser, KeepsSignsOfZerosAndSaturatesAtTheLargestCode) {
  Tensor<float> values(Shape{1, 1, 1, 6});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::array<float, 6> numbers{-0.0F, -1e-20F, 1e30F, -infinity, -0.5F, std::nanf("")};
  std::ranges::copy(numbers, values.values().begin());
  const auto all = [](std::int64_t) { return std::int64_t{1}; };
  for (const ElementType code : code_types()) {
    const auto made = quantise(values, code, Scales::none, all);
    const auto codes = made.codes.values();
    const auto largest = static_cast<float>(format_of(code).max_finite);
    EXPECT_EQ(std::signbit(codes[0]), !is_whole(code));
    EXPECT_EQ(std::signbit(codes[1]), !is_whole(code));
    EXPECT_EQ(codes[1], 0);
    EXPECT_EQ(codes[2], largest);
    EXPECT_EQ(codes[3], -largest);
    EXPECT_EQ(codes[4], is_whole(code) ? 0.0F : -0.5F);
    EXPECT_TRUE(has_nan(code) ? std::isnan(codes[5]) : codes[5] == 0);
  }
}

}  // namespace
}  // namespace attest
