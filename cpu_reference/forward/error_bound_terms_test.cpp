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

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/bound_test_kernels.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/forward/error_bound.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

using Row = BoundTestRow;

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
  row.inputs[forward::q].values()[0] = 0x1p-75F;
  const Outputs got = emulate(row.problem, {}, PrecisionPlan{}, row.inputs);
  ASSERT_EQ(got[forward::lse].values()[0], 0.0F);
  row.expect_lse_needs(&BoundConstants::score_absolute, double{got[forward::lse].values()[0]});
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
  ASSERT_EQ(got[forward::o].values()[0], 0.0F);
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
  row.expect_lse_needs(&BoundConstants::lse_scaling, double{got[forward::lse].values()[0]});
}

/// O and LSE of the keys [first, end), as a problem of their own.
Outputs part_of(const Problem& problem, const Inputs& inputs, std::int64_t first,
                std::int64_t end) {
  Problem part = problem;
  part.key_len = end - first;
  Inputs cut{inputs[forward::q], Tensor<float>(key_shape(part)), Tensor<float>(key_shape(part))};
  for (std::int64_t j = first; j < end; ++j) {
    std::ranges::copy(inputs[forward::k].row(0, 0, j),
                      cut[forward::k].row(0, 0, j - first).begin());
    std::ranges::copy(inputs[forward::v].row(0, 0, j),
                      cut[forward::v].row(0, 0, j - first).begin());
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
    for (const Outputs& part : parts) top = std::max(top, part[forward::lse].at(0, 0, n, 0));
    const auto o = out[forward::o].row(0, 0, n);
    for (const Outputs& part : parts) {
      const float x = part[forward::lse].at(0, 0, n, 0) - top;
      const float weight = mistake == Mistake::base_2_weights  ? std::exp2(x)
                           : mistake == Mistake::equal_weights ? 1.0F
                                                               : std::exp(x);
      sum += weight;
      for (std::size_t c = 0; c < o.size(); ++c) {
        const double stored = part[forward::o].row(0, 0, n)[c];
        o[c] += weight * static_cast<float>(round_to(partial_format, stored));
      }
    }
    for (float& element : o) element /= mistake == Mistake::unnormalised ? 1.0F : sum;
    out[forward::lse].at(0, 0, n, 0) = top + std::log(sum);
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

// fl(scale log2 e) is a multiple of 2^-149, about 1e5 of them.
TEST(ErrorBoundTerms, ASubnormalScaleTimesLog2OfEIsRoundedAbsolutely) {
  Row row({0x1p126F}, {1}, 1e-40F);
  row.plan.exp = exp2_folded();
  row.plan.lse = LseForm::log2;
  const Outputs got = emulate(row.problem, {}, row.plan, row.inputs);
  row.expect_lse_needs(&BoundConstants::lse_scaling, double{got[forward::lse].values()[0]});
  Row normal = row;
  normal.problem.scale = 0x1p-126F;
  EXPECT_EQ(subnormal_scale_error(normal.plan, normal.problem), 0);
}

TEST(ErrorBoundTerms, SubnormalScalesStayWithinTheBoundWhereverTheScaleEnters) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem problem{.query_len = 3, .key_len = 9, .head_dim = 2};
    problem.scale = static_cast<float>(
        std::ldexp(1 + 0.3 * static_cast<double>(seed % 3), -127 - static_cast<int>(seed % 20)));
    Inputs inputs = make_inputs(problem, {.family = "normal", .seed = seed});
    for (float& q : inputs[forward::q].values()) q *= 0x1p60F;
    for (float& k : inputs[forward::k].values()) k *= 0x1p62F;
    PrecisionPlan plan;
    plan.exp = exp2_folded();
    plan.exp.argument_error += u;
    plan.blocks = 3;
    plan.normaliser_chain = problem.key_len;
    plan.log_error = 2 * u;
    plan.scale_after_dot = seed % 2 == 0;
    plan.lse = seed % 4 < 2 ? LseForm::natural : LseForm::log2;
    const Answer answer = exact_answer(problem, inputs, plan);
    const Outputs got = emulate(problem, {.key_tile = 4}, plan, inputs);
    EXPECT_LE(worst_ratio(got[forward::o], answer[forward::o].value, answer[forward::o].bound), 1)
        << seed;
    EXPECT_LE(
        worst_ratio(got[forward::lse], answer[forward::lse].value, answer[forward::lse].bound), 1)
        << seed;
  }
}

// A weight of 1 + coarse at the maximum itself; a rescale that moves nothing errs as much.
TEST(ErrorBoundTerms, AnExponentialThatIsNotOneAtZeroNeedsItsErrorInEveryWeight) {
  Row one({0}, {1});
  one.plan.exp = {
      .name = "off", .relative_error = coarse, .argument_error = 0, .is_one_at_zero = false};
  one.expect_lse_needs(&BoundConstants::exponent, std::log1p(coarse));
  Row two({0, 0}, {1, -1});
  two.plan.exp = one.plan.exp;
  two.plan.rescale = Rescale::deferred;
  two.plan.blocks = 2;
  const double first = (1 + coarse) * (1 + coarse), second = 1 + coarse;
  two.expect_o_needs(&BoundConstants::exponent, (first - second) / (first + second));
  two.expect_lse_needs(&BoundConstants::exponent, std::log(first + second));
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
      const double o =
          worst_ratio(got[forward::o], answer[forward::o].value, answer[forward::o].bound);
      const double lse =
          worst_ratio(got[forward::lse], answer[forward::lse].value, answer[forward::lse].bound);
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
    for (float& v : inputs[forward::v].values()) v *= size;
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
    undeclared = std::max(undeclared, worst_ratio(got[forward::o], silent[forward::o].value,
                                                  silent[forward::o].bound));
    plan.flushes_subnormals = true;
    const Answer said = exact_answer(problem, inputs, plan);
    EXPECT_LE(worst_ratio(got[forward::o], said[forward::o].value, said[forward::o].bound), 1)
        << seed;
    EXPECT_LE(worst_ratio(got[forward::lse], said[forward::lse].value, said[forward::lse].bound), 1)
        << seed;
  }
  EXPECT_GT(undeclared, 1);
}
#endif

}  // namespace
}  // namespace attest
