#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/base/error.hpp"
#include "experiments/study/language/point.hpp"

namespace attest {
namespace {

StudySpec study(const std::string& rest) {
  const ParsedStudy parsed = parse_study("question: Q?\n" + rest, "test");
  for (const StudyError& error : parsed.errors) ADD_FAILURE() << to_string(error, "test");
  return parsed.spec.value_or(StudySpec{});
}

ExpansionContext context() {
  return {
      .gpu = &gpu_model_from_name("h200"),
      .launches_of = [](const KernelInfo&, const Problem&, const Plan& plan, const LaunchSetting&) {
        return std::vector<LaunchConfiguration>{{.kernel = "k",
                                                 .grid = {.x = 10},
                                                 .block = {.x = 128},
                                                 .dynamic_shared_bytes = 1024 * plan.query_tile}};
      }};
}

Expansion expansion(const std::string& rest) {
  return expand(study(rest), context());
}

std::multiset<std::string> plans_of(const Expansion& expansion) {
  std::multiset<std::string> plans;
  for (const Point& point : expansion.points) plans.insert(to_string(point.subject.plan));
  return plans;
}
std::multiset<std::string> reasons_of(const Expansion& expansion) {
  std::multiset<std::string> reasons;
  for (const Skipped& skipped : expansion.skipped)
    reasons.insert(std::string(name_of(skipped.by)) + ": " + skipped.reason);
  return reasons;
}

const std::string k5 = "kernels: k5_padded_tiles\n";

TEST(Expand, Inputs_of_another_operation_are_refused_and_beside_kernels_that_have_them_skipped) {
  const std::string inputs = "problem: {length: 100}\ninputs: {family: partial_normal}\n";
  for (const char* kernel : {"backward_tiled", "k5_padded_tiles"}) {
    std::string message;
    try {
      (void)expansion(fmt::format("kernels: {}\n{}", kernel, inputs));
    } catch (const InvalidInput& error) {
      message = error.what();
    }
    EXPECT_TRUE(
        message.starts_with("study test: inputs.family 'partial_normal' fills inputs of combine; "))
        << message;
    EXPECT_NE(message.find(" allows normal, "), std::string::npos) << message;
  }
  const Expansion mixed = expansion(
      "kernels: [backward_tiled, k5_padded_tiles]\nproblem: {length: 100}\n"
      "inputs: {family: gradient_zero}\n");
  EXPECT_FALSE(mixed.points.empty());
  for (const Point& point : mixed.points) EXPECT_EQ(point.kernel->name, "backward_tiled");
  ASSERT_FALSE(mixed.skipped.empty());
  EXPECT_TRUE(mixed.skipped.front().reason.starts_with("inputs.family 'gradient_zero' fills"));
}

TEST(Expand, Every_combination_is_a_point_or_skipped_with_a_sentence) {
  const Expansion e = expansion(
      "kernels: [k5_padded_tiles, k6_sliced_dims, cudnn_sdpa]\n"
      "problem: {length: [100, 200], heads: [2, 3], kv_heads: [1, 2], element_type: [fp32, fp16]}\n"
      "plan: {query_tile: [32, 48], key_tile: [16, 7]}\nseeds: 3\n");
  // 3 heads do not have 2 kv_heads; fp16 and cuDNN are refused before there are Plans.
  EXPECT_EQ(e.points.size(), 2U * 6 * 1 * 3) << "kernels, problems, plans, seeds";
  const auto reasons = reasons_of(e);
  EXPECT_EQ(
      reasons.count("constraint: problem field 'kv_heads' is 2; it must divide query_heads, 3"),
      3U * 4);
  EXPECT_EQ(reasons.count("kernel: cudnn_sdpa is not in this build"), 12U);
  EXPECT_EQ(reasons.count("kernel: k5_padded_tiles offers query_tile 8, 16, 24, 32, 64, not 48"),
            12U);
  std::set<std::string> ids;
  for (const Point& point : e.points) {
    ids.insert(point_id(*point.kernel, point.subject));
    EXPECT_EQ(point.kernel->executor, Executor::simt);
    EXPECT_FALSE(why_unsupported(*point.kernel, point.subject).has_value());
    EXPECT_EQ(point.axes.size(), 8U) << "kernel, length, heads, kv_heads, type, two tiles, seed";
  }
  EXPECT_EQ(ids.size(), e.points.size());
}

TEST(Expand, Only_what_varies_is_an_axis) {
  const Expansion e =
      expansion(k5 + "problem: {length: [64, 128], heads: 2, batch: 256 / length}\n");
  ASSERT_EQ(e.points.size(), 2U);
  const AxisValues axes{{"problem.length", 128.0}, {"problem.batch", 2.0}};
  EXPECT_EQ(e.points[1].axes, axes);
  EXPECT_EQ(to_string(e.points[1].subject.problem), "b2 h2/2 q128 k128 d64 none fp32");
}

TEST(Expand, A_computed_value_that_is_no_whole_number_is_skipped) {
  const auto reasons =
      reasons_of(expansion(k5 + "problem: {length: [64, 100, 0], batch: 256 / length}\n"));
  EXPECT_EQ(
      reasons.count("constraint: problem.batch is 2.56; allowed: a whole number from 1 to 1048576"),
      1U);
  EXPECT_EQ(reasons.count(
                "constraint: problem.batch = 256 / length: nothing is known of a quotient by 0"),
            1U);
}

TEST(Expand, A_window_is_for_the_masks_that_have_one) {
  const Expansion e = expansion(
      "kernels: o5_deferred\nproblem: {length: 9, mask: [none, window_top_left], window_left: [2, "
      "4]}\n");
  std::set<std::string> problems;
  for (const Point& point : e.points) problems.insert(to_string(point.subject.problem));
  EXPECT_EQ(e.points.size(), 3U);
  EXPECT_TRUE(problems.contains("b1 h1/1 q9 k9 d64 window_top_left fp32 left4"));
  EXPECT_TRUE(problems.contains("b1 h1/1 q9 k9 d64 none fp32"));
}

TEST(Expand, Pages_are_points_of_their_own_for_what_takes_them) {
  const Expansion e = expansion(
      "kernels: [decode_mma, fa2_mma]\n"
      "problem: {query_len: 1, key_len: 100, head_dim: 64, element_type: bf16}\n"
      "layout: {page_size: [0, 16], page_table: [dense, csr]}\n");
  std::multiset<std::string> points;
  std::set<std::string> ids;
  for (const Point& point : e.points) {
    points.insert(point.kernel->name + " " + to_string(point.subject.layouts.paging));
    ids.insert(point_id(*point.kernel, point.subject));
  }
  // Without pages there is no table.
  EXPECT_EQ(points, (std::multiset<std::string>{"decode_mma ", "decode_mma paged16",
                                                "decode_mma paged16/csr", "fa2_mma "}));
  EXPECT_EQ(ids.size(), 4U);
  EXPECT_EQ(e.skipped.size(), 2U);
  EXPECT_EQ(e.points[1].axes.at("layout.page_size"), AxisValue(16.0));
  EXPECT_EQ(e.points[1].axes.at("layout.page_table"), AxisValue("dense"));
}

TEST(Expand, Values_in_pages_are_drawn_from_the_family_whose_values_have_no_places) {
  const auto reasons = reasons_of(
      expansion("kernels: decode_mma\nproblem: {length: 64, head_dim: 64, element_type: bf16}\n"
                "layout: {page_size: 16}\ninputs: {family: one_hot_v}\n"));
  EXPECT_EQ(
      reasons.count("constraint: inputs one_hot_v: values of pages are drawn from normal alone"),
      1U);
}

TEST(Expand, A_field_that_is_not_asked_for_keeps_its_default) {
  const Plan usual = expansion(k5).points.at(0).subject.plan;
  for (const Point& point : expansion(k5 + "plan: {query_tile: all}\n").points) {
    Plan plan = point.subject.plan;
    EXPECT_FALSE(why_unsupported(*point.kernel, point.subject).has_value());
    plan.query_tile = usual.query_tile;
    EXPECT_EQ(to_string(plan), to_string(usual));
  }
}

TEST(Expand, One_key_split_is_none) {
  const Expansion e = expansion(
      "kernels: fa2_mma\nproblem: {heads: 8, query_len: 1, key_len: 4096, head_dim: 64, "
      "element_type: bf16}\n"
      "plan: {key_splits: [1, 2]}\n");
  ASSERT_EQ(e.points.size(), 2U);
  EXPECT_EQ(e.points[0].subject.plan.key_splits, 0);
  EXPECT_EQ(e.points[0].axes.at("plan.key_splits"), AxisValue(1.0));
  EXPECT_EQ(e.points[1].subject.plan.key_splits, 2);
}

TEST(Expand, Plan_all_is_every_offered_plan_once) {
  const Expansion e = expansion(k5 + "plan: all\n");
  const auto offered = e.points.at(0).kernel->plans(e.points.at(0).subject.problem);
  std::multiset<std::string> texts;
  for (const Plan& plan : offered) texts.insert(to_string(plan));
  EXPECT_EQ(plans_of(e), texts);
}

TEST(Expand, Alternatives_that_meet_in_one_plan_are_one_point) {
  EXPECT_EQ(expansion(k5 + "plan: [{query_tile: 32}, {query_tile: [16, 32]}]\n").points.size(), 2U);
}

TEST(Expand, A_choice_that_a_kernel_does_not_have_is_skipped) {
  const auto reasons = reasons_of(expansion(k5 + "plan: {stages: [2, 3]}\n"));
  EXPECT_EQ(reasons.count("kernel: k5_padded_tiles has no choice of stages"), 2U);
}

TEST(Expand, A_constraint_drops_points_and_says_which) {
  const Expansion e =
      expansion(k5 + "plan: {query_tile: [16, 32]}\nconstraints: [shared_bytes <= 16KiB]\n");
  ASSERT_EQ(e.points.size(), 1U);
  EXPECT_EQ(e.points[0].subject.plan.query_tile, 16);
  EXPECT_EQ(reasons_of(e).count("constraint: not: shared_bytes <= 16KiB"), 1U);
}

TEST(Expand, A_constraint_on_what_is_not_known_drops_the_point_and_says_so) {
  ExpansionContext without = context();
  without.launches_of = nullptr;
  const Expansion e = expand(study(k5 + "constraints: [threads < 1000]\n"), without);
  EXPECT_TRUE(e.points.empty());
  EXPECT_EQ(reasons_of(e).count("constraint: not: threads < 1000; nothing is known of threads: "
                                "k5_padded_tiles does not run on the SIMT executor"),
            1U);
}

TEST(Expand, A_grid_that_asks_how_many_blocks_run_at_once_is_not_known_without_machine_code) {
  ExpansionContext asks = context();
  std::int64_t blocks = 0;
  asks.launches_of = [&](const KernelInfo&, const Problem&, const Plan&,
                         const LaunchSetting& setting) {
    LaunchConfiguration launch{.kernel = "k", .grid = {}, .block = {.x = 128}};
    launch.grid.x = blocks = setting.resident_blocks(launch);
    return std::vector{launch};
  };
  const Expansion e = expand(study(k5 + "constraints: [grid_blocks < 4]\n"), asks);
  EXPECT_EQ(blocks, 132 * 16) << "of an H200, which is asked about";
  EXPECT_TRUE(e.points.empty());
  EXPECT_EQ(
      reasons_of(e).count("constraint: not: grid_blocks < 4; nothing is known of grid_blocks: "
                          "blocks are as many as the device holds; no machine code of it is "
                          "in this program"),
      1U);
}

TEST(Expand, Baselines_have_the_points_problem_and_inputs_and_a_plan_of_their_own) {
  const Expansion e =
      expansion(k5 +
                "problem: {length: [100, 200]}\ninputs: {family: sink}\nseeds: [4]\n"
                "baselines: [k4_register_tile with qt16 as k4, cudnn_sdpa, k4_register_tile with "
                "st9 as none]\n");
  ASSERT_EQ(e.points.size(), 2U);
  for (const Point& point : e.points) {
    ASSERT_EQ(point.baselines.size(), 1U);
    const Point::BaselineCase& baseline = point.baselines[0];
    EXPECT_EQ(baseline.name, "k4");
    EXPECT_EQ(baseline.subject.kernel, "k4_register_tile");
    EXPECT_EQ(baseline.subject.problem, point.subject.problem);
    EXPECT_EQ(baseline.subject.inputs, point.subject.inputs);
    EXPECT_EQ(baseline.subject.plan.query_tile, 16);
  }
  EXPECT_EQ(reasons_of(e).count("kernel: cudnn_sdpa is not in this build"), 2U) << "once a problem";
  EXPECT_EQ(reasons_of(e).count("kernel: k4_register_tile has no choice of stages"), 2U);
}

TEST(Expand, A_random_sample_has_its_size_and_depends_on_its_seed_alone) {
  const std::string grid = k5 + "problem: {length: {from: 10, to: 400, step: 10}}\n";
  const auto lengths = [&](int seed) {
    std::vector<std::string> drawn;
    const Expansion e = expansion(
        grid + "sampling: {method: random, points: 10, seed: " + std::to_string(seed) + "}\n");
    EXPECT_EQ(e.skipped.size(), 30U);
    EXPECT_EQ(reasons_of(e).count("sampling: not drawn: 10 of 40 are"), 30U);
    for (const Point& point : e.points) drawn.push_back(text_of(point.axes.at("problem.length")));
    return drawn;
  };
  EXPECT_EQ(lengths(1).size(), 10U);
  EXPECT_EQ(lengths(1), lengths(1));
  EXPECT_NE(lengths(1), lengths(2));
}

TEST(Expand, More_points_than_a_machine_could_run_are_refused) {
  EXPECT_THROW((void)expansion(k5 + "problem: {length: {from: 1, to: 1000, step: 1}}\n"
                                    "plan: {query_tile: all, key_tile: all, thread_rows: all, "
                                    "thread_keys: all, grid_order: all}\n"),
               InvalidInput);
}

}  // namespace
}  // namespace attest
