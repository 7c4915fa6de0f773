// Terms of the bound for factors in parts and for references that lag (error_bound.hpp, steps 10
// and 11): an error that each must allow, and that would be too large without it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/bound_test_kernels.hpp"
#include "cpu_reference/forward/emulation.hpp"

namespace attest {
namespace {

using Row = BoundTestRow;

/// A plan whose products are rounded like fp32's but for what splitting does.
Row split_row(const std::vector<float>& keys, const std::vector<float>& values, Parts parts) {
  Row row(keys, values);
  row.plan.score_parts = row.plan.value_parts = parts;
  return row;
}

Outputs replayed(const Row& row, const Plan& plan = {}) {
  PrecisionPlan precision = row.plan;
  precision.exp = library_expf();
  return emulate(row.problem, plan, precision, row.inputs);
}

TEST(ErrorBoundParts, RoundingFactorsToTf32IsAllowedAndNeeded) {
  Row row = split_row({1000.2F}, {1}, {.format = Parts::Format::tf32});
  const double error = std::abs(double{replayed(row)[forward::lse].values()[0]} - row.exact().lse);
  EXPECT_LE(error, row.bound().lse);
  row.plan.score_parts = {};
  EXPECT_GT(error, row.bound().lse);
}

TEST(ErrorBoundParts, AProductOfSmallPartsThatIsNotFormedIsAllowedAndNeeded) {
  // 1 + lo + rest, both as large as two parts of bf16 can leave them.
  const Parts parts{.format = Parts::Format::bf16, .count = 2};
  const float x = 1 + 0x1p-8F - 0x1.1p-17F;
  Row row = split_row({x}, {1}, parts);
  row.inputs[forward::q].values()[0] = x;
  const double score = double{x} * double{x};
  const double error = std::abs(double{replayed(row)[forward::lse].values()[0]} - row.exact().lse);
  EXPECT_LE(error, row.bound().lse);
  row.plan.score_parts = {};
  EXPECT_GT(error, row.bound().lse + 2 * rest_of(parts, 2) * score);
}

/// Beside an element of 2^36, below half of the last bit that fp16 keeps after scaling.
constexpr float large_element = 0x1p36F, lost_element = 0.2F;
constexpr Parts scaled_half{.format = Parts::Format::fp16, .count = 2, .scaled_to = 0x1p13};

TEST(ErrorBoundParts, AKeyFarBelowTheLargestOfItsTensorIsAllowedByScoreAbsolute) {
  Row row = split_row({lost_element, large_element}, {1, 1}, scaled_half);
  row.problem.mask = Mask::causal_top_left;  // only the first key is seen
  const Outputs got = replayed(row);
  ASSERT_EQ(got[forward::lse].values()[0], 0.0F);
  row.expect_lse_needs(&BoundConstants::score_absolute, 0);
}

TEST(ErrorBoundParts, AQueryFarBelowTheLargestOfItsTensorIsAllowedByScoreAbsolute) {
  Row row = split_row({1}, {1}, scaled_half);
  row.problem.query_len = 2;
  row.inputs[forward::q] = Tensor<float>(query_shape(row.problem));
  row.inputs[forward::q].values()[0] = lost_element;
  row.inputs[forward::q].values()[1] = large_element;
  ASSERT_EQ(replayed(row)[forward::lse].values()[0], 0.0F);
  row.expect_lse_needs(&BoundConstants::score_absolute, 0);
}

TEST(ErrorBoundParts, AValueFarBelowTheLargestOfItsTensorIsAllowedByValueAbsolute) {
  Row row = split_row({0, 0}, {lost_element, large_element}, scaled_half);
  row.problem.mask = Mask::causal_top_left;
  ASSERT_EQ(replayed(row)[forward::o].values()[0], 0.0F);
  row.expect_o_needs(&BoundConstants::value_absolute, 0);
}

TEST(ErrorBoundParts, AWeightBelowTheLastBitOfItsPartsIsAllowedByWeightAbsolute) {
  Row row = split_row({0, -25.01F * std::numbers::ln2_v<float>}, {0, 1e30F}, scaled_half);
  ASSERT_EQ(replayed(row)[forward::o].values()[0], 0.0F);
  row.expect_o_needs(&BoundConstants::weight_absolute, 0);
  // Scaled, the same weight keeps all its digits.
  row.plan.weight_scale = 0x1p13;
  ASSERT_GT(replayed(row)[forward::o].values()[0], 0.0F);
  EXPECT_LT(row.bound().o[0], row.exact().o[0]);
}

TEST(ErrorBoundParts, AnElementPastTheFormatOfItsPartsLeavesNothingToProve) {
  const float largest = std::numeric_limits<float>::max();
  Row row = split_row({1}, {1}, {.format = Parts::Format::tf32, .count = 2});
  EXPECT_TRUE(std::isfinite(row.bound().lse));
  row.inputs[forward::q].values()[0] = largest;
  EXPECT_FALSE(std::isfinite(row.bound().lse));
  row.inputs[forward::q].values()[0] = 1;
  row.inputs[forward::v].values()[0] = largest;
  EXPECT_FALSE(std::isfinite(row.bound().o[0]));
}

/// Equal keys; the first value is 1, and every other one is lost when it is added by itself.
Row lossy_sum(std::size_t keys) {
  std::vector<float> values(keys, 0x1.fp-25F);
  values[0] = 1;
  Row row(std::vector<float>(keys, 0), values);
  row.plan.rescale = Rescale::deferred;
  row.plan.normaliser_chain = 1;  // counts are exact
  return row;
}

TEST(ErrorBoundParts, EveryAdditionOfAPromotedBlockIsAllowedAndNeeded) {
  Row row = lossy_sum(256);
  row.plan.promoted_keys = 1;
  row.plan.blocks = 256;
  const double error =
      std::abs(double{replayed(row, {.key_tile = 1})[forward::o].values()[0]} - row.exact().o[0]);
  EXPECT_LE(error, row.bound().o[0]);
  row.plan.blocks = 1;
  EXPECT_GT(error, row.bound().o[0]);
}

TEST(ErrorBoundParts, OneChainOverAllBlocksNeedsMoreThanPromotedBlocksDo) {
  Row row = lossy_sum(1 << 15);
  row.plan.value = hopper_tf32();
  row.plan.value_parts = {.format = Parts::Format::tf32, .count = 2, .cut = 1};
  row.plan.blocks = 256;
  for (float& v : row.inputs[forward::v].values()) v = 1.3F;
  const auto error = [&] {
    return std::abs(double{replayed(row, {.key_tile = 128})[forward::o].values()[0]} -
                    row.exact().o[0]);
  };
  const double of_chain = error();
  EXPECT_LE(of_chain, row.bound().o[0]);
  row.plan.promoted_keys = 128;
  EXPECT_GT(of_chain, row.bound().o[0]);
  EXPECT_LE(error(), row.bound().o[0]);
}

TEST(ErrorBoundParts, AReferenceThatLagsLengthensArgumentsAndTheLogarithm) {
  constexpr double lag = 8;
  Row row({0, 0}, {1, -1});
  row.plan.rescale = Rescale::deferred;
  row.plan.log_error = coarse;
  row.plan.reference_lag = lag;
  row.plan.blocks = 2;
  const double lambda = lag * std::numbers::ln2;
  const double lse = std::numbers::ln2 + coarse * (std::numbers::ln2 + lambda);
  row.expect_lse_needs(&BoundConstants::lag, lse);
  row.plan.exp = {"coarse", 0, coarse};
  // One weight was formed lambda above the reference, which then rose by as much.
  const double o = std::tanh(coarse * lambda);
  EXPECT_LE(o, row.bound().o[0]);
  row.plan.reference_lag = 0;
  EXPECT_GT(o, row.bound().o[0]);
}

TEST(ErrorBoundParts, WeightsAboveOneMayOverflowAsMuchEarlier) {
  Row row({0, 0}, {0x1p124F, 0x1p124F});
  EXPECT_TRUE(std::isfinite(row.bound().o[0]));
  row.plan.reference_lag = 4;
  EXPECT_FALSE(std::isfinite(row.bound().o[0]));
  row.inputs[forward::v].values()[0] = row.inputs[forward::v].values()[1] = 1;
  EXPECT_TRUE(std::isfinite(row.bound().o[0]));
  row.plan.weight_format = ElementType::fp16;
  EXPECT_TRUE(std::isfinite(row.bound().o[0]));
  row.plan.weight_scale = 0x1p13;
  EXPECT_FALSE(std::isfinite(row.bound().o[0]));
}

}  // namespace
}  // namespace attest
