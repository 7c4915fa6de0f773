// The statistics layer where sums go another way than a random walk: no alarm for a kernel that
// rounds as it says, an alarm for one that rounds its sums more coarsely.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "verify/judge/compare.hpp"
#include "verify/judge/run.hpp"
#include "verify/judge/statistics.hpp"

namespace attest {
namespace {

constexpr std::int64_t path_keys = 224;

Problem path_problem() {
  return {.query_heads = 2,
          .query_len = 48,
          .key_len = path_keys,
          .head_dim = 64,
          .scale = default_scale(64)};
}

PrecisionPlan path_precision() {
  PrecisionPlan precision;
  precision.normaliser_chain = path_keys;
  precision.division_error = 0x1p-24;
  precision.log_error = 0x1p-23;
  return precision;
}

/// N(0, 1) queries and keys; V runs from +size to -size along the keys, with noise of its own.
Inputs with_trend(const Problem& problem, double size, std::uint64_t seed) {
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = seed});
  for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
    for (std::int64_t j = 0; j < problem.key_len; ++j) {
      const double place = static_cast<double>(j) / static_cast<double>(problem.key_len - 1);
      for (float& v : inputs[forward::v].row(0, h, j))
        v += static_cast<float>(size * (1 - 2 * place));
    }
  }
  return inputs;
}

/// The last element of every query and key the same: all scores move alike, by their last product.
void move_scores(Inputs& inputs, const Problem& problem, float root) {
  const auto dim = static_cast<std::size_t>(problem.head_dim);
  for (std::size_t i = dim - 1; i < inputs[forward::q].values().size(); i += dim)
    inputs[forward::q].values()[i] = root;
  for (std::size_t i = dim - 1; i < inputs[forward::k].values().size(); i += dim)
    inputs[forward::k].values()[i] = root;
}

/// Statistics of a kernel that performs `performed` and declares `declared`.
StatisticValues values_of(const Problem& problem, const Inputs& inputs, const Plan& plan,
                          const PrecisionPlan& performed, const PrecisionPlan& declared) {
  const Answer answer = exact_answer(problem, inputs, declared);
  const Outputs outputs = emulate(problem, plan, performed, inputs);
  const auto models = model_errors(problem, inputs, declared, answer);
  EXPECT_TRUE(has_enough(Statistic::o_largest, models));
  return statistics_of(models, answer, outputs);
}

/// Names of the statistics above their thresholds.
std::set<std::string> alarms_of(const Problem& problem, const Inputs& inputs, const Plan& plan,
                                const PrecisionPlan& performed, const PrecisionPlan& declared) {
  const StatisticValues values = values_of(problem, inputs, plan, performed, declared);
  std::set<std::string> alarms;
  for (const StatisticInfo& info : all_statistics()) {
    const StatisticValue& value = values[static_cast<std::size_t>(info.statistic)];
    if (value.applies && !within(info.threshold, value.value)) alarms.emplace(info.name);
  }
  return alarms;
}

using Names = std::set<std::string>;

TEST(StatisticsOfPaths, PartialSumsFarAboveTheLastOneRaiseNoAlarm) {
  const Problem problem = path_problem();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (const double size : {0.0, 4.0, 64.0}) {
      const Inputs inputs = with_trend(problem, size, seed);
      EXPECT_EQ(alarms_of(problem, inputs, {}, path_precision(), path_precision()), Names{})
          << "trend " << size << ", seed " << seed;
    }
  }
}

TEST(StatisticsOfPaths, ChainsOfOneBlockThatAreAddedUpRaiseNoAlarm) {
  const Problem problem = path_problem();
  PrecisionPlan precision = path_precision();
  precision.blocks = path_keys / 32;
  precision.promoted_keys = 32;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Inputs inputs = with_trend(problem, 64, seed);
    EXPECT_EQ(alarms_of(problem, inputs, {.key_tile = 32}, precision, precision), Names{}) << seed;
  }
}

TEST(StatisticsOfPaths, PartsThatAreWeighedByRoundedLseErrByThatRoundingToo) {
  const Problem problem = path_problem();
  PrecisionPlan precision = path_precision();
  precision.blocks = precision.splits = 2;
  precision.merge = Merge::lse_pairs;
  // The excess of one launch is below the threshold, so those of many are added: they are
  // independent, with a standard deviation of 1.
  constexpr std::uint64_t launches = 16;
  double excess = 0;
  for (std::uint64_t seed = 0; seed < launches; ++seed) {
    Inputs inputs = with_trend(problem, 0, seed);
    move_scores(inputs, problem, 15);
    // One split has large values, the other their negatives: what its weight errs by is seen.
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      for (std::int64_t j = 0; j < path_keys; ++j) {
        for (float& v : inputs[forward::v].row(0, h, j))
          v += j < path_keys / 2 ? 1000.0F : -1000.0F;
      }
    }
    const Plan plan{.key_tile = path_keys / 2, .key_splits = 2};
    const StatisticValues values = values_of(problem, inputs, plan, precision, precision);
    const StatisticValue& row_gain = values[static_cast<std::size_t>(Statistic::o_row_gain)];
    EXPECT_TRUE(row_gain.applies);
    excess += row_gain.value;
  }
  EXPECT_LE(excess / std::sqrt(static_cast<double>(launches)),
            info_of(Statistic::o_row_gain).threshold);
}

TEST(StatisticsOfPaths, ScoresThatCancelAlongTheHeadDimRaiseNoAlarm) {
  const Problem problem = path_problem();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Inputs inputs = with_trend(problem, 0, seed);
    // What the first dimension adds the last one takes away.
    for (std::size_t i = 0; i < inputs[forward::q].values().size(); i += 64) {
      inputs[forward::q].values()[i] = inputs[forward::q].values()[i + 63] = 40;
    }
    for (std::size_t i = 0; i < inputs[forward::k].values().size(); i += 64) {
      inputs[forward::k].values()[i] = 40;
      inputs[forward::k].values()[i + 63] = -40;
    }
    EXPECT_EQ(alarms_of(problem, inputs, {}, path_precision(), path_precision()), Names{}) << seed;
  }
}

/// Attention in double but for its exponential, which errs by error(x) at x = s - max s.
Outputs with_exponential(const Problem& p, const Inputs& inputs,
                         const std::function<double(double)>& error) {
  Outputs out{Tensor<float>(output_shape(p)), Tensor<float>(lse_shape(p))};
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      const auto q = inputs[forward::q].row(0, h, n);
      std::vector<double> scores;
      for (std::int64_t j = 0; j < p.key_len; ++j) {
        const auto k = inputs[forward::k].row(0, p.kv_head_of(h), j);
        scores.push_back(double{p.scale} * std::inner_product(q.begin(), q.end(), k.begin(), 0.0));
      }
      const double top = *std::ranges::max_element(scores);
      double sum = 0;
      std::vector<double> o(q.size());
      for (std::int64_t j = 0; j < p.key_len; ++j) {
        const double x = scores[static_cast<std::size_t>(j)] - top;
        const double weight = std::exp(x) * (1 + error(x));
        sum += weight;
        const auto v = inputs[forward::v].row(0, p.kv_head_of(h), j);
        for (std::size_t c = 0; c < o.size(); ++c) o[c] += weight * double{v[c]};
      }
      for (std::size_t c = 0; c < o.size(); ++c) {
        out[forward::o].row(0, h, n)[c] = static_cast<float>(o[c] / sum);
      }
      out[forward::lse].at(0, h, n, 0) = static_cast<float>(top + std::log(sum));
    }
  }
  return out;
}

// An error of one sign, and one that swings between the limits as a polynomial's does.
TEST(StatisticsOfPaths, AnExponentialThatErrsByItsDeclaredLimitRaisesNoAlarm) {
  constexpr double limit = 1e-4;
  const Problem problem = path_problem();
  const Inputs inputs = with_trend(problem, 0, 3);
  const auto judge = [&](const PrecisionPlan& precision, const auto& error) {
    const Outputs got = with_exponential(problem, inputs, error);
    const Answer answer = exact_answer(problem, inputs, precision);
    EXPECT_LE(
        compare(got[forward::o], answer[forward::o].value, answer[forward::o].bound).worst.ratio,
        1);
    EXPECT_LE(compare(got[forward::lse], answer[forward::lse].value, answer[forward::lse].bound)
                  .worst.ratio,
              1);
    const StatisticValues values =
        statistics_of(model_errors(problem, inputs, precision, answer), answer, got);
    return std::ranges::count_if(all_statistics(), [&](const StatisticInfo& info) {
      const StatisticValue& value = values[static_cast<std::size_t>(info.statistic)];
      return value.applies && !within(info.threshold, value.value);
    });
  };
  PrecisionPlan declared = path_precision();
  declared.exp = {.name = "declared",
                  .relative_error = limit,
                  .argument_error = 0,
                  .is_one_at_zero = false,
                  .is_scattered = false};
  PrecisionPlan scattered = declared;
  scattered.exp.is_scattered = true;
  const auto constant = [](double) { return limit; };
  const auto swinging = [](double x) { return limit * std::cos(4 * x); };
  EXPECT_EQ(judge(declared, constant), 0);
  EXPECT_EQ(judge(declared, swinging), 0);
  EXPECT_GT(judge(scattered, swinging), 0);
}

TEST(StatisticsOfPaths, ADivisionThatAlwaysErrsToOneSideRaisesNoAlarmIfItIsDeclared) {
  constexpr double limit = 0x1p-16;
  const Problem problem = path_problem();
  const Inputs inputs = with_trend(problem, 0, 3);
  Outputs got = emulate(problem, {}, path_precision(), inputs);
  for (float& o : got[forward::o].values()) o *= static_cast<float>(1 + limit / 2);
  const auto has_gain = [&](double division_error) {
    PrecisionPlan declared = path_precision();
    declared.division_error = division_error;
    const Answer answer = exact_answer(problem, inputs, declared);
    const StatisticValues values =
        statistics_of(model_errors(problem, inputs, declared, answer), answer, got);
    const StatisticValue& gain = values[static_cast<std::size_t>(Statistic::o_gain)];
    EXPECT_TRUE(gain.applies);
    return !within(info_of(Statistic::o_gain).threshold, gain.value);
  };
  EXPECT_FALSE(has_gain(limit));
  EXPECT_TRUE(has_gain(path_precision().division_error));
}

// Weights below 2^-15 of the largest, whose second parts are subnormal in fp16, seen one by one.
TEST(StatisticsOfPaths, SmallWeightsInPartsRaiseNoAlarm) {
  const KernelInfo* kernel = find_kernel("emulated_split_sm90", Executor::cpu);
  ASSERT_NE(kernel, nullptr);
  Case c{.kernel = kernel->name};
  c.problem = {.query_len = 7, .key_len = 100, .head_dim = 98, .scale = 0.3F};
  const auto plans = kernel->plans(c.problem);
  const auto plan = std::ranges::find_if(
      plans, [](const Plan& candidate) { return to_string(candidate) == "kt32 products=fp16_x3"; });
  ASSERT_NE(plan, plans.end());
  c.plan = *plan;
  c.inputs = {.family = "one_hot_v", .seed = 1779526115085753383U};
  HostMemoryDevice device;
  attest::Run run(*kernel, c, device);
  const StatisticValue& largest = run.statistics()[static_cast<std::size_t>(Statistic::o_largest)];
  EXPECT_TRUE(largest.applies);
  EXPECT_LE(largest.value, info_of(Statistic::o_largest).threshold);
}

TEST(StatisticsOfPaths, CoarserSumsThanDeclaredAreSeenUnderATrendToo) {
  const Problem problem = path_problem();
  PrecisionPlan coarse = path_precision();
  coarse.value = {.kind = Accumulation::Kind::tensor_core, .fused_terms = 4, .fraction_bits = 21};
  const Inputs inputs = with_trend(problem, 64, 1);
  EXPECT_NE(alarms_of(problem, inputs, {}, coarse, path_precision()), Names{});
}

}  // namespace
}  // namespace attest
