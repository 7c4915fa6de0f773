// Every term of the bound by itself: an error that it must allow, and that would be too large if
// the term were 0.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "core/input_family.hpp"
#include "core/random.hpp"
#include "cpu_reference/emulation.hpp"
#include "cpu_reference/error_bound.hpp"
#include "cpu_reference/oracle.hpp"
#include "cpu_reference/reference_f64.hpp"

namespace attest {
namespace {

constexpr double u = 0x1p-24;
/// Of a score that is large against every term which does not grow with it.
constexpr double large_score = 1000;
/// A declared error far above all roundings of a short row.
constexpr double coarse = 0x1p-10;

/// One query that is 1, keys whose dot products are given, and values; one column.
struct Row {
  Problem problem;
  Inputs inputs;
  PrecisionPlan plan;

  Row(const std::vector<float>& keys, const std::vector<float>& values, float scale = 1)
      : problem{.query_len = 1,
                .key_len = static_cast<std::int64_t>(keys.size()),
                .head_dim = 1,
                .scale = scale},
        inputs{Tensor<float>(query_shape(problem), 1.0F), Tensor<float>(key_shape(problem)),
               Tensor<float>(key_shape(problem))} {
    std::ranges::copy(keys, inputs.k.values().begin());
    std::ranges::copy(values, inputs.v.values().begin());
    plan.rescale = Rescale::none;
    plan.exp = {"exact", 0, 0};
  }

  [[nodiscard]] OracleRow<double> exact() const {
    return oracle_row<double>(problem, inputs, 0, 0, 0);
  }
  /// The bounds of O and LSE, with one constant set to 0.
  [[nodiscard]] OracleBound<double> bound(double BoundConstants::*zeroed = nullptr) const {
    BoundConstants c = bound_constants(plan, problem, problem.key_len, magnitudes_of(inputs));
    if (zeroed != nullptr) c.*zeroed = 0;
    return oracle_bound(problem, inputs, 0, 0, exact(), c, plan.scale_folded_into_q);
  }
  void expect_o_needs(double BoundConstants::*term, double got) const {
    const double error = std::abs(got - exact().o[0]);
    EXPECT_LE(error, bound().o[0]);
    EXPECT_GT(error, bound(term).o[0]);
  }
  void expect_lse_needs(double BoundConstants::*term, double got) const {
    const double error = std::abs(got - exact().lse);
    EXPECT_LE(error, bound().lse);
    EXPECT_GT(error, bound(term).lse);
  }
};

// One key: LSE is its score. Product, scaling and the last addition round upwards.
TEST(ErrorBoundTerms, TheRoundingsOfAScaledScoreAndOfTheLseAreAllNeeded) {
  const Row row({static_cast<float>(large_score)}, {1});
  const double lse = large_score * (1 + u) * (1 + u) * (1 + u);
  row.expect_lse_needs(&BoundConstants::score_relative, lse);
  row.expect_lse_needs(&BoundConstants::score_rounding, lse);
  row.expect_lse_needs(&BoundConstants::rounding, lse);
}

TEST(ErrorBoundTerms, AProductThatUnderflowsBeforeALargeScaleIsAllowedByScoreAbsolute) {
  Row row({0x1p-75F}, {1}, 0x1p100F);
  row.inputs.q.values()[0] = 0x1p-75F;
  const Outputs got = emulate(row.problem, {}, PrecisionPlan{}, row.inputs);
  ASSERT_EQ(got.lse.values()[0], 0.0F);
  row.expect_lse_needs(&BoundConstants::score_absolute, double{got.lse.values()[0]});
}

// One key far above the cap: LSE is its capped score.
TEST(ErrorBoundTerms, TheDeclaredErrorOfASoftcapIsAllowedAndNeeded) {
  Row row({static_cast<float>(large_score)}, {1});
  row.problem.softcap = 2;
  row.plan.softcap_error = coarse;
  row.expect_lse_needs(&BoundConstants::score_absolute, 2 * (1 + coarse));
}

// fl(m c) rounds down, so the only weight is e^(u m), and m scale rounds up.
TEST(ErrorBoundTerms, AScaleInsideTheExponentNeedsTheRoundingOfTheLargestScore) {
  Row row({static_cast<float>(large_score)}, {1});
  row.plan.scale_after_dot = false;
  const double m = large_score * (1 + u);
  row.expect_lse_needs(&BoundConstants::largest_score, m * (1 + u) + u * m + u * m);
}

TEST(ErrorBoundTerms, TheDeclaredErrorsOfDivisionAndLogarithmAreAllowedAndNeeded) {
  Row row({0, 0}, {1, 1});
  row.plan.rescale = Rescale::deferred;
  row.plan.division_error = coarse;
  row.plan.log_error = coarse;
  row.expect_o_needs(&BoundConstants::division, 1 + coarse);
  row.expect_lse_needs(&BoundConstants::logarithm, std::numbers::ln2 * (1 + coarse));
}

TEST(ErrorBoundTerms, AWeightThatVanishesInItsFormatIsAllowedByWeightAbsolute) {
  Row row({0, -25.01F * std::numbers::ln2_v<float>}, {0, 1e30F});
  row.plan.weight_format = ElementType::fp16;
  PrecisionPlan replayed = row.plan;
  replayed.exp = library_expf();
  const Outputs got = emulate(row.problem, {}, replayed, row.inputs);
  ASSERT_EQ(got.o.values()[0], 0.0F);
  row.expect_o_needs(&BoundConstants::weight_absolute, 0);
}

TEST(ErrorBoundTerms, ManyVanishingWeightsInTheNormaliserAreAllowedByNormaliserAbsolute) {
  // Together more than the roundoff of fp16; l is summed in pairs.
  std::vector<float> keys((1 << 15) + 1, -25.01F * std::numbers::ln2_v<float>);
  keys[0] = 0;
  Row row(keys, std::vector<float>(keys.size(), 1));
  row.plan.weight_format = ElementType::fp16;
  row.plan.sums_rounded_weights = true;
  row.plan.normaliser_chain = 16;
  row.expect_lse_needs(&BoundConstants::normaliser_absolute, 0);
}

// Two splits of one key each; scores and the splits' LSE err in opposite directions.
TEST(ErrorBoundTerms, MergingByLseNeedsTheRoundingOfEverySplitsLse) {
  const auto score = static_cast<float>(large_score);
  Row row({score, score}, {1, -1});
  row.plan.rescale = Rescale::deferred;
  row.plan.blocks = row.plan.splits = 2;
  row.plan.merge = Merge::lse_pairs;
  const double up = large_score * (1 + u) * (1 + u) * (1 + u);
  const double down = large_score * (1 - u) * (1 - u) * (1 - u);
  row.expect_o_needs(&BoundConstants::partial_score, std::tanh((up - down) / 2));
}

TEST(ErrorBoundTerms, AMaximumInUnitsOfLog2NeedsATermOfTheLse) {
  // The score whose LSE comes out worst, two equal keys.
  double worst = 0;
  float scale = 1, key = 1;
  for (int i = 0; i < 300; ++i) {
    const float s = std::numbers::ln2_v<float> * (1 + static_cast<float>(i) * 0x1p-20F);
    const float c = s * std::numbers::log2e_v<float>;
    for (int j = 0; j < 300; ++j) {
      const float x = 1024 * (1 + static_cast<float>(j) * 0x1p-16F);
      const float lse = c * x * std::numbers::ln2_v<float> + std::log(2.0F);
      const double error = std::abs(double{lse} - (double{s} * double{x} + std::numbers::ln2));
      if (error / (double{s} * double{x}) <= worst) continue;
      worst = error / (double{s} * double{x});
      scale = s;
      key = x;
    }
  }
  Row row({key, key}, {1, 1}, scale);
  row.plan.exp = exp2_folded();
  row.plan.lse = LseForm::log2;
  const Outputs got = emulate(row.problem, {}, row.plan, row.inputs);
  row.expect_lse_needs(&BoundConstants::lse_scaling, double{got.lse.values()[0]});
}

// Factors in parts, references that lag: error_bound.hpp, steps 10 and 11.

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

TEST(ErrorBoundTerms, RoundingFactorsToTf32IsAllowedAndNeeded) {
  Row row = split_row({1000.2F}, {1}, {.format = Parts::Format::tf32});
  const double error = std::abs(double{replayed(row).lse.values()[0]} - row.exact().lse);
  EXPECT_LE(error, row.bound().lse);
  row.plan.score_parts = {};
  EXPECT_GT(error, row.bound().lse);
}

TEST(ErrorBoundTerms, AProductOfSmallPartsThatIsNotFormedIsAllowedAndNeeded) {
  // 1 + lo + rest, both as large as two parts of bf16 can leave them.
  const Parts parts{.format = Parts::Format::bf16, .count = 2};
  const float x = 1 + 0x1p-8F - 0x1.1p-17F;
  Row row = split_row({x}, {1}, parts);
  row.inputs.q.values()[0] = x;
  const double score = double{x} * double{x};
  const double error = std::abs(double{replayed(row).lse.values()[0]} - row.exact().lse);
  EXPECT_LE(error, row.bound().lse);
  row.plan.score_parts = {};
  EXPECT_GT(error, row.bound().lse + 2 * rest_of(parts, 2) * score);
}

/// Beside an element of 2^36, below half of the last bit that fp16 keeps after scaling.
constexpr float large_element = 0x1p36F, lost_element = 0.2F;
constexpr Parts scaled_half{.format = Parts::Format::fp16, .count = 2, .scaled_to = 0x1p13};

TEST(ErrorBoundTerms, AKeyFarBelowTheLargestOfItsTensorIsAllowedByScoreAbsolute) {
  Row row = split_row({lost_element, large_element}, {1, 1}, scaled_half);
  row.problem.mask = Mask::causal_top_left;  // only the first key is seen
  const Outputs got = replayed(row);
  ASSERT_EQ(got.lse.values()[0], 0.0F);
  row.expect_lse_needs(&BoundConstants::score_absolute, 0);
}

TEST(ErrorBoundTerms, AQueryFarBelowTheLargestOfItsTensorIsAllowedByScoreAbsolute) {
  Row row = split_row({1}, {1}, scaled_half);
  row.problem.query_len = 2;
  row.inputs.q = Tensor<float>(query_shape(row.problem));
  row.inputs.q.values()[0] = lost_element;
  row.inputs.q.values()[1] = large_element;
  ASSERT_EQ(replayed(row).lse.values()[0], 0.0F);
  row.expect_lse_needs(&BoundConstants::score_absolute, 0);
}

TEST(ErrorBoundTerms, AValueFarBelowTheLargestOfItsTensorIsAllowedByValueAbsolute) {
  Row row = split_row({0, 0}, {lost_element, large_element}, scaled_half);
  row.problem.mask = Mask::causal_top_left;
  ASSERT_EQ(replayed(row).o.values()[0], 0.0F);
  row.expect_o_needs(&BoundConstants::value_absolute, 0);
}

TEST(ErrorBoundTerms, AWeightBelowTheLastBitOfItsPartsIsAllowedByWeightAbsolute) {
  Row row = split_row({0, -25.01F * std::numbers::ln2_v<float>}, {0, 1e30F}, scaled_half);
  ASSERT_EQ(replayed(row).o.values()[0], 0.0F);
  row.expect_o_needs(&BoundConstants::weight_absolute, 0);
  // Scaled, the same weight keeps all its digits.
  row.plan.weight_scale = 0x1p13;
  ASSERT_GT(replayed(row).o.values()[0], 0.0F);
  EXPECT_LT(row.bound().o[0], row.exact().o[0]);
}

TEST(ErrorBoundTerms, AnElementPastTheFormatOfItsPartsLeavesNothingToProve) {
  const float largest = std::numeric_limits<float>::max();
  Row row = split_row({1}, {1}, {.format = Parts::Format::tf32, .count = 2});
  EXPECT_TRUE(std::isfinite(row.bound().lse));
  row.inputs.q.values()[0] = largest;
  EXPECT_FALSE(std::isfinite(row.bound().lse));
  row.inputs.q.values()[0] = 1;
  row.inputs.v.values()[0] = largest;
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

TEST(ErrorBoundTerms, EveryAdditionOfAPromotedBlockIsAllowedAndNeeded) {
  Row row = lossy_sum(256);
  row.plan.promoted_keys = 1;
  row.plan.blocks = 256;
  const double error =
      std::abs(double{replayed(row, {.key_tile = 1}).o.values()[0]} - row.exact().o[0]);
  EXPECT_LE(error, row.bound().o[0]);
  row.plan.blocks = 1;
  EXPECT_GT(error, row.bound().o[0]);
}

TEST(ErrorBoundTerms, OneChainOverAllBlocksNeedsMoreThanPromotedBlocksDo) {
  Row row = lossy_sum(1 << 15);
  row.plan.value = hopper_tf32();
  row.plan.value_parts = {.format = Parts::Format::tf32, .count = 2, .cut = 1};
  row.plan.blocks = 256;
  for (float& v : row.inputs.v.values()) v = 1.3F;
  const auto error = [&] {
    return std::abs(double{replayed(row, {.key_tile = 128}).o.values()[0]} - row.exact().o[0]);
  };
  const double of_chain = error();
  EXPECT_LE(of_chain, row.bound().o[0]);
  row.plan.promoted_keys = 128;
  EXPECT_GT(of_chain, row.bound().o[0]);
  EXPECT_LE(error(), row.bound().o[0]);
}

TEST(ErrorBoundTerms, AReferenceThatLagsLengthensArgumentsAndTheLogarithm) {
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

TEST(ErrorBoundTerms, WeightsAboveOneMayOverflowAsMuchEarlier) {
  Row row({0, 0}, {0x1p124F, 0x1p124F});
  EXPECT_TRUE(std::isfinite(row.bound().o[0]));
  row.plan.reference_lag = 4;
  EXPECT_FALSE(std::isfinite(row.bound().o[0]));
  row.inputs.v.values()[0] = row.inputs.v.values()[1] = 1;
  EXPECT_TRUE(std::isfinite(row.bound().o[0]));
  row.plan.weight_format = ElementType::fp16;
  EXPECT_TRUE(std::isfinite(row.bound().o[0]));
  row.plan.weight_scale = 0x1p13;
  EXPECT_FALSE(std::isfinite(row.bound().o[0]));
}

/// O and LSE of the keys [first, end), as a problem of their own.
Outputs part_of(const Problem& problem, const Inputs& inputs, std::int64_t first,
                std::int64_t end) {
  Problem part = problem;
  part.key_len = end - first;
  Inputs cut{inputs.q, Tensor<float>(key_shape(part)), Tensor<float>(key_shape(part))};
  for (std::int64_t j = first; j < end; ++j) {
    std::ranges::copy(inputs.k.row(0, 0, j), cut.k.row(0, 0, j - first).begin());
    std::ranges::copy(inputs.v.row(0, 0, j), cut.v.row(0, 0, j - first).begin());
  }
  return emulate(part, {.key_tile = 4}, PrecisionPlan{}, cut);
}

enum class Mistake { none, base_2_weights, equal_weights, unnormalised };

/// Splits of a problem without a mask, merged through (O_p, LSE_p) by code of its own.
Outputs merged(const Problem& problem, const Inputs& inputs, std::int64_t splits, Mistake mistake,
               ElementType partial_format) {
  std::vector<Outputs> parts;
  for (std::int64_t p = 0; p < splits; ++p) {
    parts.push_back(
        part_of(problem, inputs, p * problem.key_len / splits, (p + 1) * problem.key_len / splits));
  }
  Outputs out{Tensor<float>(query_shape(problem)), Tensor<float>({1, 1, problem.query_len, 1})};
  for (std::int64_t n = 0; n < problem.query_len; ++n) {
    float top = -std::numeric_limits<float>::infinity(), sum = 0;
    for (const Outputs& part : parts) top = std::max(top, part.lse.at(0, 0, n, 0));
    const auto o = out.o.row(0, 0, n);
    for (const Outputs& part : parts) {
      const float x = part.lse.at(0, 0, n, 0) - top;
      const float weight = mistake == Mistake::base_2_weights  ? std::exp2(x)
                           : mistake == Mistake::equal_weights ? 1.0F
                                                               : std::exp(x);
      sum += weight;
      for (std::size_t c = 0; c < o.size(); ++c) {
        const double stored = part.o.row(0, 0, n)[c];
        o[c] += weight * static_cast<float>(round_to(partial_format, stored));
      }
    }
    for (float& element : o) element /= mistake == Mistake::unnormalised ? 1.0F : sum;
    out.lse.at(0, 0, n, 0) = top + std::log(sum);
  }
  return out;
}

double worst_ratio(const Tensor<float>& got, const Tensor<double>& want,
                   const Tensor<double>& bound) {
  double worst = 0;
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double error = std::abs(double{got.values()[i]} - want.values()[i]);
    const double ratio = error == 0 ? 0 : error / bound.values()[i];
    worst = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : std::max(worst, ratio);
  }
  return worst;
}

TEST(ErrorBoundTerms, SplitsMergedByTheirLseStayWithinTheBoundAndWrongMergesDoNot) {
  constexpr std::int64_t lengths[] = {7, 16, 33, 65};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem problem{.query_len = 5, .key_len = lengths[seed % 4], .head_dim = 16};
    problem.scale = default_scale(16) * (seed % 3 == 0 ? 8.0F : 1.0F);
    const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = seed});
    PrecisionPlan plan;
    plan.splits = 2 + static_cast<std::int64_t>(seed % 5);
    plan.blocks = problem.key_len;
    plan.normaliser_chain = problem.key_len + plan.splits;
    plan.log_error = 2 * u;
    plan.merge = Merge::lse_pairs;
    plan.partial_format = all_element_types()[seed % 3];
    const Answer answer = exact_answer(problem, inputs, plan);
    for (const Mistake mistake :
         {Mistake::none, Mistake::base_2_weights, Mistake::equal_weights, Mistake::unnormalised}) {
      const Outputs got = merged(problem, inputs, plan.splits, mistake, plan.partial_format);
      const double o = worst_ratio(got.o, answer.o, answer.o_bound);
      const double lse = worst_ratio(got.lse, answer.lse, answer.lse_bound);
      if (mistake == Mistake::none) {
        EXPECT_LE(o, 1) << seed;
        EXPECT_LE(lse, 1) << seed;
      } else {
        EXPECT_GT(o, 1) << seed << ' ' << static_cast<int>(mistake);
      }
    }
  }
}

#if defined(__SSE2__)
/// Flushes subnormal results of this thread to 0 while it lives.
class FlushToZero {
 public:
  FlushToZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8000U); }
  ~FlushToZero() { _mm_setcsr(before_); }
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

 private:
  unsigned before_;
};

TEST(ErrorBoundTerms, AKernelThatFlushesSubnormalsNeedsToSaySo) {
  double undeclared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem{.query_len = 3, .key_len = 17, .head_dim = 8, .scale = default_scale(8)};
    Inputs inputs = make_inputs(problem, {.family = "normal", .seed = seed});
    // From subnormal values to small normal ones, whose weighted sums are subnormal.
    const float size = std::exp2(-128.0F + static_cast<float>(seed % 8));
    for (float& v : inputs.v.values()) v *= size;
    PrecisionPlan plan;
    plan.blocks = 5;
    plan.normaliser_chain = problem.key_len;
    plan.log_error = 2 * u;
    Outputs got{Tensor<float>(query_shape(problem)), Tensor<float>({1, 1, 3, 1})};
    {
      const FlushToZero mode;
      got = emulate(problem, {.key_tile = 4}, plan, inputs);
    }
    const Answer silent = exact_answer(problem, inputs, plan);
    undeclared = std::max(undeclared, worst_ratio(got.o, silent.o, silent.o_bound));
    plan.flushes_subnormals = true;
    const Answer said = exact_answer(problem, inputs, plan);
    EXPECT_LE(worst_ratio(got.o, said.o, said.o_bound), 1) << seed;
    EXPECT_LE(worst_ratio(got.lse, said.lse, said.lse_bound), 1) << seed;
  }
  EXPECT_GT(undeclared, 1);
}
#endif

}  // namespace
}  // namespace attest
