#include <gtest/gtest.h>

#include "gpu/model/cost_model.hpp"

namespace attest {
namespace {

const GpuModel& the_h200() {
  return gpu_model_from_name("h200");
}

PrecisionPlan on_tensor_cores(const Parts& parts) {
  PrecisionPlan plan;
  plan.score = plan.value = hopper();
  plan.score_parts = plan.value_parts = parts;
  return plan;
}

TEST(ProductRate, IsThatOfTheUnitsThatMultiply) {
  EXPECT_EQ(product_flops_per_s(the_h200(), ElementType::fp32, PrecisionPlan{}),
            the_h200().fp32_flops);
  EXPECT_EQ(product_flops_per_s(the_h200(), ElementType::fp16, PrecisionPlan{}),
            the_h200().fp32_flops);
  EXPECT_EQ(product_flops_per_s(the_h200(), ElementType::fp16, on_tensor_cores({})),
            the_h200().fp16_flops);
  EXPECT_EQ(product_flops_per_s(the_h200(), ElementType::fp32,
                                on_tensor_cores({.format = Parts::Format::tf32})),
            the_h200().tf32_flops);
}

TEST(ProductRate, PartsAreMultipliedOneThreeOrSixTimes) {
  const auto rate = [](Parts::Format format, int count) {
    return product_flops_per_s(the_h200(), ElementType::fp32,
                               on_tensor_cores({.format = format, .count = count}));
  };
  EXPECT_EQ(rate(Parts::Format::tf32, 2), the_h200().tf32_flops / 3);
  EXPECT_EQ(rate(Parts::Format::fp16, 2), the_h200().fp16_flops / 3);
  EXPECT_EQ(rate(Parts::Format::bf16, 3), the_h200().fp16_flops / 6);
}

TEST(ProductRate, EachOfTheTwoProductsHasHalfOfTheWork) {
  PrecisionPlan mixed = on_tensor_cores({.format = Parts::Format::fp16, .count = 2});
  mixed.value = {};
  const double apart = 1 / (the_h200().fp16_flops / 3) + 1 / the_h200().fp32_flops;
  EXPECT_DOUBLE_EQ(product_flops_per_s(the_h200(), ElementType::fp32, mixed), 2 / apart);
}

TEST(ProductRate, ThreeOfTheFiveProductsOfGradientsAreSums) {
  BackwardRoundings mixed{.score = hopper(), .product = hopper()};
  const double apart = 2 / the_h200().fp16_flops + 3 / the_h200().fp32_flops;
  EXPECT_DOUBLE_EQ(product_flops_per_s(the_h200(), ElementType::fp16, mixed), 5 / apart);
}

TEST(ProductRate, CodesAreMultipliedAsTheyAreWhereBothFactorsAreCodes) {
  const Codes all{.q = Code::e4m3, .k = Code::e4m3, .v = Code::e4m3};
  const Codes cache{.q = Code::none, .k = Code::e4m3, .v = Code::e4m3};
  PrecisionPlan plan = on_tensor_cores({});
  plan.weight_format = ElementType::e4m3;
  const auto rate = [&](const Codes& codes) {
    return product_flops_per_s(the_h200(), ElementType::bf16, plan, codes);
  };
  EXPECT_EQ(rate(all), the_h200().fp8_flops);
  EXPECT_DOUBLE_EQ(rate(cache), 2 / (1 / the_h200().fp16_flops + 1 / the_h200().fp8_flops));
  plan.weight_format = ElementType::bf16;
  EXPECT_EQ(rate(cache), the_h200().fp16_flops);
}

TEST(ProductRate, IsNothingWithoutSuchUnits) {
  EXPECT_EQ(product_flops_per_s(gpu_model_from_name("t4"), ElementType::fp32,
                                on_tensor_cores({.format = Parts::Format::tf32})),
            0);
}

}  // namespace
}  // namespace attest
