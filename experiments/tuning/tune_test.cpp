#include "experiments/tuning/tune.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/registry.hpp"
#include "experiments/tuning/suites.hpp"

namespace attest {
namespace {

/// Emulated attention that says how long a launch of a Plan takes, and notes what was timed. With a
/// Plan among `wrong` its answers are wrong; with one among `lazy` they are when it is timed.
struct Stopwatch {
  std::function<double(const Plan&)> time_ms;
  std::set<std::int64_t> wrong{}, lazy{};
  std::set<std::int64_t> timed{};

  KernelInfo kernel(std::function<std::vector<Plan>(const Problem&)> plans) {
    KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
    const auto right = kernel.launch;
    kernel.name = "a_kernel";
    kernel.plans = std::move(plans);
    kernel.unsupported = {};
    kernel.precision = [precision = kernel.precision](const Problem& p, const Plan&) {
      return precision(p, {.key_tile = 16});
    };
    kernel.launch = [this, right](ForwardArguments a, Device& device) {
      if (wrong.contains(a.plan.query_tile)) a.problem.scale *= 1.01F;
      a.plan = {.key_tile = 16};
      right(a, device);
    };
    kernel.timed_launch = [this, launch = kernel.launch](const ForwardArguments& a, Device& device,
                                                         LaunchesInRow) {
      timed.insert(a.plan.query_tile);
      if (!lazy.contains(a.plan.query_tile)) launch(a, device);
      return time_ms(a.plan);
    };
    return kernel;
  }
};

/// Ten Plans of query_tile 16 to 160, the larger the faster.
struct TenPlans : Stopwatch {
  explicit TenPlans(std::set<std::int64_t> wrong_tiles = {})
      : Stopwatch{.time_ms =
                      [](const Plan& plan) { return 160.0 / static_cast<double>(plan.query_tile); },
                  .wrong = std::move(wrong_tiles)} {}
  KernelInfo ten = kernel([](const Problem&) {
    std::vector<Plan> plans;
    for (std::int64_t i = 1; i <= 10; ++i) plans.push_back({.query_tile = 16 * i});
    return plans;
  });
};

const Problem problem = problem_from_string("b2 h4/2 q10 k30 d8 fp32");
const Provenance provenance{.commit = "abc1234",
                            .compiler = "GNU 12",
                            .cuda_compiler = "13.0",
                            .build_type = "Release",
                            .device = "NVIDIA H200, sm_90, 132 SMs",
                            .date = "2026-11-22T03:00:00Z"};

Tuning tuned(const KernelInfo& kernel) {
  const auto device = make_device(Executor::cpu);
  TimedProblem timed(problem, {}, *device);
  Gate gate([] { return std::make_unique<InProcessRunner>(); });
  return tune(kernel, timed, gate, provenance);
}

TEST(Tune, finds_the_fastest_plan_and_writes_what_is_needed_to_find_it_again) {
  TenPlans plans;
  const Tuning tuning = tuned(plans.ten);
  ASSERT_TRUE(tuning.winner);
  const TunedPlan& row = *tuning.winner;
  EXPECT_EQ(row.plan, "qt160");
  EXPECT_EQ(row.runner_up, "qt144");
  EXPECT_EQ(row.runner_up_ratio, (160.0 / 144.0) / 1.0);
  EXPECT_EQ(row.time_ms, 1.0);
  EXPECT_EQ(row.rate_tflops, forward_flops(problem) / 1e9);
  EXPECT_EQ(row.plans, 10);
  EXPECT_EQ(row.refused, 0);
  EXPECT_EQ(row.key, tuning_key("a_kernel", problem, "NVIDIA H200"));
  EXPECT_EQ(row.commit, "abc1234");
  EXPECT_EQ(row.build, "nvcc 13.0, Release");
  EXPECT_EQ(problem_from_string(row.problem), problem);
  EXPECT_EQ(plans.timed.size(), 10U);

  TuningTable table;
  add_row(table, row);
  EXPECT_EQ(tuning_table_from_json(to_json(table), "here"), table);
  EXPECT_EQ(default_plan(plans.ten, problem, "NVIDIA H200", table)->plan.query_tile, 160);
}

TEST(Tune, never_times_a_wrong_plan) {
  TenPlans plans({160, 144, 16});
  const Tuning tuning = tuned(plans.ten);
  EXPECT_EQ(tuning.winner->plan, "qt128");
  EXPECT_EQ(tuning.winner->refused, 3);
  ASSERT_EQ(tuning.refused.size(), 3U);
  EXPECT_NE(tuning.refused.front().reason.find("within_bound"), std::string::npos);
  for (const std::int64_t tile : {160, 144, 16}) EXPECT_FALSE(plans.timed.contains(tile));
  EXPECT_EQ(plans.timed.size(), 7U);
}

TEST(Tune, a_plan_that_is_fast_because_it_does_nothing_when_timed_is_no_winner) {
  TenPlans plans;
  plans.lazy = {160, 144};
  const Tuning tuning = tuned(plans.ten);
  EXPECT_EQ(tuning.winner->plan, "qt128");
  ASSERT_EQ(tuning.refused.size(), 2U);
  EXPECT_NE(tuning.refused.front().reason.find("when it is timed on other values"),
            std::string::npos);
}

TEST(Tune, has_no_winner_when_every_plan_is_wrong) {
  TenPlans plans({16, 32, 48, 64, 80, 96, 112, 128, 144, 160});
  const Tuning tuning = tuned(plans.ten);
  EXPECT_FALSE(tuning.winner);
  EXPECT_EQ(tuning.refused.size(), 10U);
  EXPECT_TRUE(plans.timed.empty());
}

TEST(Tune, of_one_right_plan_has_no_runner_up) {
  TenPlans plans({16, 32, 48, 64, 80, 96, 112, 128, 144});
  const TunedPlan row = *tuned(plans.ten).winner;
  EXPECT_EQ(row.plan, "qt160");
  EXPECT_EQ(row.runner_up, "");
  EXPECT_EQ(row.runner_up_ratio, 0);
}

/// Three tiles; orders are offered with the first tile only, as by with_grid_orders().
struct TilesAndOrders : Stopwatch {
  TilesAndOrders()
      : Stopwatch{.time_ms = [](const Plan& plan) {
          return 100.0 - static_cast<double>(plan.query_tile) -
                 static_cast<double>(plan.grid_order);
        }} {
    tiles.unsupported = [](const Problem&, const Plan& plan) -> std::optional<std::string> {
      if (plan.query_tile == 64 && plan.grid_order == 3) return "too large";
      return std::nullopt;
    };
  }
  KernelInfo tiles = kernel([](const Problem&) {
    std::vector<Plan> plans{{.query_tile = 16}, {.query_tile = 32}, {.query_tile = 64}};
    for (std::int64_t order = 1; order <= 3; ++order) {
      plans.push_back({.query_tile = 16, .grid_order = order});
    }
    return plans;
  });
};

TEST(Tune, tries_the_orders_of_one_tile_with_the_fastest_tiles) {
  TilesAndOrders plans;
  const TunedPlan row = *tuned(plans.tiles).winner;
  EXPECT_EQ(plan_from_string(row.plan), (Plan{.query_tile = 64, .grid_order = 2}));
  EXPECT_EQ(row.plans, 6 + 2 + 3);  // with tile 64 the third order is refused
  TuningTable table;
  add_row(table, row);
  EXPECT_EQ(default_plan(plans.tiles, problem, "NVIDIA H200", table)->origin,
            DefaultPlan::Origin::tuned);
}

TEST(Tune, is_for_gpu_kernels_that_run_the_problem_and_have_a_choice) {
  KernelInfo good = TenPlans().ten;
  good.executor = Executor::gpu;
  KernelInfo on_host = good, mutant = good, missing = good, other_type = good, one_plan = good;
  on_host.executor = Executor::simt;
  mutant.role = KernelRole::mutant;
  missing.unavailable = [] { return "no library"; };
  other_type.element_types = {ElementType::bf16};
  one_plan.plans = [](const Problem&) { return std::vector<Plan>{{.query_tile = 16}}; };
  const std::vector<const KernelInfo*> all{&on_host,    &mutant,   &missing,
                                           &other_type, &one_plan, &good};
  EXPECT_EQ(tunable(all, problem), std::vector<const KernelInfo*>{&good});
}

TEST(Suites, have_valid_problems_of_different_keys) {
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
