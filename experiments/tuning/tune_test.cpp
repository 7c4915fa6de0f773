#include "experiments/tuning/tune.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/run/default_plan.hpp"
#include "experiments/tuning/suites.hpp"

namespace attest {
namespace {

/// A kernel with ten Plans of query_tile 16 to 160, the larger the faster.
KernelInfo ten_plans() {
  KernelInfo kernel;
  kernel.name = "ten_plans";
  kernel.executor = Executor::gpu;
  kernel.element_types = {ElementType::bf16};
  kernel.masks = {Mask::none};
  kernel.plans = [](const Problem&) {
    std::vector<Plan> plans;
    for (std::int64_t i = 1; i <= 10; ++i) plans.push_back({.query_tile = 16 * i});
    return plans;
  };
  return kernel;
}

/// Says which Plans are wrong, keeps which were timed.
class FakeBench final : public Bench {
 public:
  explicit FakeBench(std::set<std::int64_t> wrong_tiles = {}) : wrong_(std::move(wrong_tiles)) {}
  std::optional<std::string> why_wrong(const Plan& plan) override {
    verified.insert(plan.query_tile);
    if (wrong_.contains(plan.query_tile)) return "it is wrong";
    return std::nullopt;
  }
  double time_ms(const Plan& plan) override {
    EXPECT_TRUE(verified.contains(plan.query_tile));
    timed.insert(plan.query_tile);
    return 160.0 / static_cast<double>(plan.query_tile);
  }
  std::set<std::int64_t> verified, timed;

 private:
  std::set<std::int64_t> wrong_;
};

const Problem problem = problem_from_string("b2 h4/2 q100 k300 d64 bf16");
const Provenance provenance{.commit = "abc1234",
                            .compiler = "GNU 12",
                            .cuda_compiler = "13.0",
                            .build_type = "Release",
                            .device = "NVIDIA H200, sm_90, 132 SMs",
                            .date = "2026-11-22T03:00:00Z"};

TEST(Tune, FindsTheFastestPlanAndWritesWhatIsNeededToFindItAgain) {
  FakeBench bench;
  const Tuning tuning = tune(ten_plans(), problem, bench, provenance);
  ASSERT_TRUE(tuning.winner);
  const TunedPlan& row = *tuning.winner;
  EXPECT_EQ(row.plan, "qt160");
  EXPECT_EQ(row.runner_up, "qt144");
  EXPECT_EQ(row.runner_up_ratio, (160.0 / 144.0) / 1.0);
  EXPECT_EQ(row.time_ms, 1.0);
  EXPECT_EQ(row.rate_tflops, forward_flops(problem) / 1e9);
  EXPECT_EQ(row.plans, 10);
  EXPECT_EQ(row.refused, 0);
  EXPECT_EQ(row.key, tuning_key("ten_plans", problem, "NVIDIA H200"));
  EXPECT_EQ(row.commit, "abc1234");
  EXPECT_EQ(row.build, "nvcc 13.0, Release");
  EXPECT_EQ(problem_from_string(row.problem), problem);
  EXPECT_EQ(bench.verified.size(), 10U);

  TuningTable table;
  add_row(table, row);
  EXPECT_EQ(tuning_table_from_json(to_json(table), "here"), table);
  EXPECT_EQ(default_plan(ten_plans(), problem, "NVIDIA H200", table)->plan.query_tile, 160);
}

TEST(Tune, NeverTimesAWrongPlan) {
  FakeBench bench({160, 144, 16});
  const Tuning tuning = tune(ten_plans(), problem, bench, provenance);
  EXPECT_EQ(tuning.winner->plan, "qt128");
  EXPECT_EQ(tuning.winner->refused, 3);
  ASSERT_EQ(tuning.refused.size(), 3U);
  EXPECT_EQ(tuning.refused.front().reason, "it is wrong");
  for (const std::int64_t tile : {160, 144, 16}) EXPECT_FALSE(bench.timed.contains(tile));
  EXPECT_EQ(bench.timed.size(), 7U);
}

TEST(Tune, HasNoWinnerWhenEveryPlanIsWrong) {
  FakeBench bench({16, 32, 48, 64, 80, 96, 112, 128, 144, 160});
  const Tuning tuning = tune(ten_plans(), problem, bench, provenance);
  EXPECT_FALSE(tuning.winner);
  EXPECT_EQ(tuning.refused.size(), 10U);
  EXPECT_TRUE(bench.timed.empty());
}

TEST(Tune, OfOneRightPlanHasNoRunnerUp) {
  FakeBench bench({16, 32, 48, 64, 80, 96, 112, 128, 144});
  const TunedPlan row = *tune(ten_plans(), problem, bench, provenance).winner;
  EXPECT_EQ(row.plan, "qt160");
  EXPECT_EQ(row.runner_up, "");
  EXPECT_EQ(row.runner_up_ratio, 0);
}

/// Three tiles; orders are offered with the first tile only, as by with_grid_orders().
KernelInfo tiles_and_orders() {
  KernelInfo kernel = ten_plans();
  kernel.plans = [](const Problem&) {
    std::vector<Plan> plans{{.query_tile = 16}, {.query_tile = 32}, {.query_tile = 64}};
    for (std::int64_t order = 1; order <= 3; ++order) {
      plans.push_back({.query_tile = 16, .grid_order = order});
    }
    return plans;
  };
  kernel.unsupported = [](const Problem&, const Plan& plan) -> std::optional<std::string> {
    if (plan.query_tile == 64 && plan.grid_order == 3) return "too large";
    return std::nullopt;
  };
  return kernel;
}

TEST(Tune, TriesTheOrdersOfOneTileWithTheFastestTiles) {
  class OrderedBench final : public Bench {
   public:
    std::optional<std::string> why_wrong(const Plan& plan) override {
      verified.push_back(plan);
      return std::nullopt;
    }
    double time_ms(const Plan& plan) override {
      EXPECT_NE(std::ranges::find(verified, plan), verified.end()) << to_string(plan);
      return 100.0 - static_cast<double>(plan.query_tile) - static_cast<double>(plan.grid_order);
    }
    std::vector<Plan> verified;
  } bench;
  const TunedPlan row = *tune(tiles_and_orders(), problem, bench, provenance).winner;
  EXPECT_EQ(plan_from_string(row.plan), (Plan{.query_tile = 64, .grid_order = 2}));
  EXPECT_EQ(row.plans, 6 + 2 + 3);  // with tile 64 the third order is refused
  TuningTable table;
  add_row(table, row);
  EXPECT_EQ(default_plan(tiles_and_orders(), problem, "NVIDIA H200", table)->origin,
            DefaultPlan::Origin::tuned);
}

TEST(Tune, IsForGpuKernelsThatRunTheProblemAndHaveAChoice) {
  const KernelInfo good = ten_plans();
  KernelInfo on_host = good, mutant = good, missing = good, other_type = good, one_plan = good;
  on_host.executor = Executor::simt;
  mutant.role = KernelRole::mutant;
  missing.unavailable = [] { return "no library"; };
  other_type.element_types = {ElementType::fp32};
  one_plan.plans = [](const Problem&) { return std::vector<Plan>{{.query_tile = 16}}; };
  const std::vector<const KernelInfo*> all{&on_host,    &mutant,   &missing,
                                           &other_type, &one_plan, &good};
  EXPECT_EQ(tunable(all, problem), std::vector<const KernelInfo*>{&good});
}

TEST(Suites, HaveValidProblemsOfDifferentKeys) {
  for (const Suite& suite : all_suites()) {
    const std::vector<Problem> problems = problems_of_suite(suite.name);
    std::set<TuningKey> keys;
    for (const Problem& p : problems) {
      EXPECT_NO_THROW(validate(p)) << suite.name;
      EXPECT_EQ(problem_from_string(to_string(p)), p) << suite.name;
      keys.insert(tuning_key("kernel", p, "gpu"));
    }
    EXPECT_EQ(keys.size(), problems.size()) << suite.name;
  }
  EXPECT_EQ(problems_of_suite("fa3").size(), 36U);
}

}  // namespace
}  // namespace attest
