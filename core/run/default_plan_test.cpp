// What a table of winners may and may not decide [C31: a cache key without element type and mask].
#include "core/run/default_plan.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/attention/problem_field_test.hpp"
#include "core/run/card.hpp"

namespace attest {
namespace {

constexpr std::string_view gpu = "NVIDIA H200";
const Plan first{.query_tile = 16}, second{.query_tile = 32}, third{.query_tile = 64};

KernelInfo kernel_offering(std::vector<Plan> plans) {
  KernelInfo kernel;
  kernel.name = "kernel";
  kernel.plans = [plans = std::move(plans)](const Problem&) { return plans; };
  return kernel;
}

Problem tuned_problem() {
  return problem_from_string("b2 h8/4 q1024 k2048 d64 causal_bottom_right bf16");
}

TunedPlan row_for(const Problem& problem, const std::string& plan, std::string_view device = gpu) {
  return {
      .key = tuning_key("kernel", problem, device), .problem = to_string(problem), .plan = plan};
}

TuningTable table_of(std::vector<TunedPlan> rows) {
  TuningTable table;
  for (TunedPlan& row : rows) add_row(table, std::move(row));
  return table;
}

DefaultPlan choice_for(const Problem& problem, const TuningTable& table,
                       const std::vector<Plan>& offered = {first, second, third}) {
  return *default_plan(kernel_offering(offered), problem, gpu, table);
}

struct Change {
  std::string what;
  std::function<void(Problem&)> make;
};

/// One change for everything that a Problem says.
const std::vector<Change>& foreign_changes() {
  static const std::vector<Change> changes{
      {"element type", [](Problem& p) { p.element_type = ElementType::fp16; }},
      {"mask", [](Problem& p) { p.mask = Mask::none; }},
      {"causal alignment", [](Problem& p) { p.mask = Mask::causal_top_left; }},
      {"head dim", [](Problem& p) { p.head_dim = 128; }},
      {"query heads per KV head", [](Problem& p) { p.kv_heads = 1; }},
      {"value dim", [](Problem& p) { p.value_dim = 32; }},
      {"window",
       [](Problem& p) {
         p.mask = Mask::window_bottom_right, p.window = {8, 0};
       }},
      {"softcap", [](Problem& p) { p.softcap = 30; }},
      {"lengths", [](Problem& p) { p.length_seed = 1; }},
      {"padding", [](Problem& p) { p.padding_seed = 1; }}};
  return changes;
}
const std::vector<Change>& near_changes() {
  static const std::vector<Change> changes{
      {"query_len", [](Problem& p) { p.query_len *= 2; }},
      {"key_len", [](Problem& p) { p.key_len /= 2; }},
      {"batch", [](Problem& p) { p.batch *= 2; }},
      {"heads", [](Problem& p) { p.query_heads *= 2, p.kv_heads *= 2; }}};
  return changes;
}

TEST(DefaultPlan, IsTheWinnerOfTheProblemsOwnBuckets) {
  const TuningTable table = table_of({row_for(tuned_problem(), "qt32")});
  const DefaultPlan choice = choice_for(tuned_problem(), table);
  EXPECT_EQ(choice.plan, second);
  EXPECT_EQ(choice.origin, DefaultPlan::Origin::tuned);
  Problem inside = tuned_problem();
  inside.query_len = 513;  // up to 1,024 is one bucket
  inside.batch = 1, inside.query_heads = 10, inside.kv_heads = 5;
  EXPECT_EQ(choice_for(inside, table).origin, DefaultPlan::Origin::tuned);
}

TEST(DefaultPlan, OfAKernelWithARuleIsTheRulesWhateverTheTableSays) {
  KernelInfo kernel = kernel_offering({first, second});
  kernel.has_plan_rule = true;
  const TuningTable table = table_of({row_for(tuned_problem(), "qt32")});
  const DefaultPlan choice = *default_plan(kernel, tuned_problem(), gpu, table);
  EXPECT_EQ(choice.plan, first);
  EXPECT_EQ(choice.origin, DefaultPlan::Origin::rule);
  EXPECT_FALSE(choice.row);
  kernel.has_plan_rule = false;
  EXPECT_EQ(default_plan(kernel, tuned_problem(), gpu, table)->plan, second);
}

TEST(DefaultPlan, IsNeverTakenFromARowOfAnotherElementTypeMaskDimOrGroup) {
  const TuningTable table = table_of({row_for(tuned_problem(), "qt32")});
  for (const Change& change : foreign_changes()) {
    Problem problem = tuned_problem();
    change.make(problem);
    const DefaultPlan choice = choice_for(problem, table);
    EXPECT_EQ(choice.plan, first) << change.what;
    EXPECT_EQ(choice.origin, DefaultPlan::Origin::first) << change.what;
    EXPECT_FALSE(choice.row) << change.what;
  }
}

TEST(DefaultPlan, OfAWindowIsNeverTakenFromARowOfAnother) {
  Problem window = tuned_problem();
  window.mask = Mask::window_bottom_right;
  window.window = {1000, 0};
  const TuningTable table = table_of({row_for(window, "qt32")});
  window.window = {600, 0};  // up to 1,024 is one bucket
  EXPECT_EQ(choice_for(window, table).origin, DefaultPlan::Origin::tuned);
  for (const Window other : {Window{100, 0}, Window{-1, 0}, Window{1000, 1}, Window{1000, -1}}) {
    window.window = other;
    EXPECT_EQ(choice_for(window, table).origin, DefaultPlan::Origin::first);
  }
}

TEST(DefaultPlan, IsNeverTakenFromARowOfAnotherKernelOrArchitecture) {
  TunedPlan of_other_kernel = row_for(tuned_problem(), "qt32");
  of_other_kernel.key.kernel = "kernel_2";
  const TuningTable table =
      table_of({row_for(tuned_problem(), "qt32", "NVIDIA A100-SXM4-80GB"),
                row_for(tuned_problem(), "qt32", "who knows"), of_other_kernel});
  EXPECT_EQ(choice_for(tuned_problem(), table).origin, DefaultPlan::Origin::first);
}

TEST(DefaultPlan, OnACardThatWasNotTunedIsTheNearestCardsAndSaysSo) {
  const TuningTable table = table_of({row_for(tuned_problem(), "qt32", "NVIDIA H100 80GB HBM3"),
                                      row_for(tuned_problem(), "qt64", "NVIDIA H200")});
  const auto on = [&](std::string_view card) {
    return *default_plan(kernel_offering({first, second, third}), tuned_problem(), card, table);
  };
  EXPECT_EQ(on("NVIDIA H100 NVL").plan, second);
  EXPECT_EQ(on("NVIDIA H20").plan, third);
  EXPECT_EQ(on("NVIDIA H300, sm_90, 132 SMs, 4.7 TB/s").plan, third);
  EXPECT_EQ(on("NVIDIA B200, sm_100, 148 SMs").plan, first);
  EXPECT_EQ(on("NVIDIA H100 NVL").origin, DefaultPlan::Origin::tuned);
  EXPECT_EQ(on("NVIDIA H100 NVL").card_octaves,
            octaves_between(card_in("NVIDIA H100 80GB HBM3"), card_in("NVIDIA H100 NVL")));
  EXPECT_EQ(to_string(on("NVIDIA H100 NVL")),
            "tuned on NVIDIA H100 80GB HBM3, the nearest card to NVIDIA H100 NVL, for " +
                to_string(tuned_problem()));
  EXPECT_EQ(to_string(on("NVIDIA H200")), "tuned on NVIDIA H200 for " + to_string(tuned_problem()));
}

// Half an octave lies between an H100 and an H200.
TEST(DefaultPlan, TakesTheNextCardsOwnBucketsBeforeItsOwnCardsNextOnes) {
  Problem longer = tuned_problem();
  longer.query_len *= 2;
  const TunedPlan here = row_for(longer, "qt32"),
                  there = row_for(tuned_problem(), "qt64", "NVIDIA H100 80GB HBM3"),
                  far = row_for(tuned_problem(), "qt64", "NVIDIA H20");
  EXPECT_EQ(choice_for(tuned_problem(), table_of({here, there})).plan, third);
  EXPECT_EQ(choice_for(tuned_problem(), table_of({here, far})).plan, second);
  EXPECT_EQ(choice_for(longer, table_of({here, there})).plan, second);
}

KernelInfo kernel_that_cuts_keys(std::vector<Plan> plans) {
  KernelInfo kernel = kernel_offering(std::move(plans));
  kernel.unsupported = [](const Problem&, const Plan&) { return std::nullopt; };
  return kernel;
}

TEST(DefaultPlan, CutsKeysIntoAsManyPartsAnSmAsOnTheCardThatItIsFrom) {
  const Plan split{.query_tile = 16, .key_splits = 17};
  const TuningTable table = table_of({row_for(tuned_problem(), to_string(split))});
  KernelInfo kernel = kernel_that_cuts_keys({first, split});
  const auto splits_on = [&](std::string_view card) {
    return default_plan(kernel, tuned_problem(), card, table)->plan.key_splits;
  };
  EXPECT_EQ(splits_on("NVIDIA H200"), 17);
  EXPECT_EQ(splits_on("NVIDIA H200 NVL"), 17);
  EXPECT_EQ(splits_on("NVIDIA H100 PCIe"), 15);          // 17 * 114 / 132 = 14.7
  EXPECT_EQ(splits_on("NVIDIA H20"), 10);                // 17 * 78 / 132 = 10.05
  EXPECT_EQ(splits_on("NVIDIA H200, sm_90, 1 SMs"), 1);  // never none
  EXPECT_EQ(splits_on("NVIDIA H200, sm_90, 264 SMs"), 34);
  EXPECT_EQ(to_string(*default_plan(kernel, tuned_problem(), "NVIDIA H20", table)),
            "tuned on NVIDIA H200, the nearest card to NVIDIA H20, for " +
                to_string(tuned_problem()) + "; keys cut for 78 SMs instead of 132");
  kernel.unsupported = [](const Problem&, const Plan& plan) -> std::optional<std::string> {
    if (plan.key_splits == 10) return "10 is one too many";
    return std::nullopt;
  };
  EXPECT_EQ(splits_on("NVIDIA H20"), 17);
  EXPECT_EQ(splits_on("NVIDIA H100 PCIe"), 15);
  kernel.unsupported = nullptr;  // it takes what it offers
  EXPECT_EQ(splits_on("NVIDIA H100 PCIe"), 17);
}

TEST(DefaultPlan, OfAKernelsOwnIsCutForTheSmsOfTheCardToo) {
  const auto keys_on = [](std::int64_t keys, bool is_rule, std::string_view card) {
    KernelInfo kernel = kernel_that_cuts_keys({Plan{.query_tile = 16, .split_keys = keys}});
    kernel.has_plan_rule = is_rule;
    return default_plan(kernel, tuned_problem(), card, {})->plan.split_keys;
  };
  for (const bool is_rule : {true, false}) {
    EXPECT_EQ(keys_on(512, is_rule, "NVIDIA H200"), 512);
    EXPECT_EQ(keys_on(512, is_rule, "who knows"), 512);
    EXPECT_EQ(keys_on(512, is_rule, "NVIDIA H20"), 896);        // 866.5, in steps of 128
    EXPECT_EQ(keys_on(512, is_rule, "NVIDIA H100 PCIe"), 640);  // 592.8
    EXPECT_EQ(keys_on(192, is_rule, "NVIDIA H20"), 320);        // 324.9, in steps of 64
    EXPECT_EQ(keys_on(64, is_rule, "NVIDIA H100 PCIe"), 64);
    EXPECT_EQ(keys_on(64, is_rule, "NVIDIA H300, sm_90, 1000 SMs"), 64);
  }
  KernelInfo kernel = kernel_that_cuts_keys({Plan{.query_tile = 16, .split_keys = 512}});
  kernel.has_plan_rule = true;
  EXPECT_EQ(to_string(*default_plan(kernel, tuned_problem(), "NVIDIA H20", {})),
            "the kernel's rule for these lengths and heads; keys cut for 78 SMs instead of 132");
}

TEST(WherePlansAreFrom, IsTheNearestCardOfTheTable) {
  const TuningTable table = table_of({row_for(tuned_problem(), "qt32", "NVIDIA H100 80GB HBM3"),
                                      row_for(tuned_problem(), "qt64", "NVIDIA H200")});
  EXPECT_EQ(where_plans_are_from("NVIDIA H200, sm_90, 132 SMs", table), "tuned on this card");
  EXPECT_EQ(where_plans_are_from("NVIDIA H200, sm_90, 66 SMs", table),
            "tuned on this card; keys cut for 66 SMs instead of 132");
  EXPECT_EQ(where_plans_are_from("NVIDIA H100 NVL", table),
            "of NVIDIA H100 80GB HBM3, the nearest card that was tuned, 0.2 octaves away");
  EXPECT_EQ(where_plans_are_from("NVIDIA H20", table),
            "of NVIDIA H200, the nearest card that was tuned, 1.3 octaves away; keys cut for 78 "
            "SMs instead of 132");
  EXPECT_EQ(where_plans_are_from("NVIDIA B200, sm_100, 148 SMs", table),
            "kernels' own: no card of this architecture was tuned");
  EXPECT_EQ(where_plans_are_from("NVIDIA H200", {}),
            "kernels' own: no card of this architecture was tuned");
}

TEST(DefaultPlan, MayBeTheWinnerOfOtherLengthsAndHeadsAndSaysSo) {
  const TuningTable table = table_of({row_for(tuned_problem(), "qt32")});
  for (const Change& change : near_changes()) {
    Problem problem = tuned_problem();
    change.make(problem);
    const DefaultPlan choice = choice_for(problem, table);
    EXPECT_EQ(choice.plan, second) << change.what;
    EXPECT_EQ(choice.origin, DefaultPlan::Origin::nearby) << change.what;
    EXPECT_EQ(choice.octaves, 1) << change.what;
    EXPECT_NE(to_string(choice).find(to_string(tuned_problem())), std::string::npos);
  }
}

TEST(DefaultPlan, IsTheSameForBothCausalAlignmentsOfASquareProblem) {
  Problem square = tuned_problem();
  square.query_len = square.key_len;
  const TuningTable table = table_of({row_for(square, "qt32")});
  square.mask = Mask::causal_top_left;
  EXPECT_EQ(choice_for(square, table).origin, DefaultPlan::Origin::tuned);
  EXPECT_EQ(choice_for(tuned_problem(), table).origin, DefaultPlan::Origin::nearby);
  square.mask = Mask::none;
  EXPECT_EQ(choice_for(square, table).origin, DefaultPlan::Origin::first);
}

// A table of long prompts once decided how one query is decoded: in tiles of 128 rows, unsplit.
TEST(DefaultPlan, OfFewQueriesComesFromTheirOwnBucketsAlone) {
  for (const std::int64_t few : {1, 16}) {
    Problem decoded = tuned_problem();
    decoded.query_len = few;
    const TuningTable of_many = table_of({row_for(tuned_problem(), "qt32")}),
                      of_few = table_of({row_for(decoded, "qt32")});
    EXPECT_EQ(choice_for(decoded, of_many).origin, DefaultPlan::Origin::first);
    EXPECT_EQ(choice_for(tuned_problem(), of_few).origin, DefaultPlan::Origin::first);
    EXPECT_EQ(choice_for(decoded, of_few).origin, DefaultPlan::Origin::tuned);
    for (const Change& change : near_changes()) {
      Problem other = decoded;
      change.make(other);
      EXPECT_EQ(choice_for(other, of_few).origin, DefaultPlan::Origin::first) << change.what;
    }
  }
}

TEST(DefaultPlan, IsTheNearestOfSeveral) {
  Problem far = tuned_problem(), near = tuned_problem(), asked = tuned_problem();
  far.query_len = 16384;
  near.query_len = 2048;
  asked.query_len = 3000;  // in the bucket of 4,096
  const std::vector<TunedPlan> rows{row_for(far, "qt64"), row_for(near, "qt32")};
  EXPECT_EQ(choice_for(asked, table_of(rows)).plan, second);
  asked.query_len = 16000;
  EXPECT_EQ(choice_for(asked, table_of(rows)).plan, third);
  EXPECT_EQ(choice_for(asked, table_of(rows)).octaves, 0);
}

TEST(DefaultPlan, PassesOverWinnersThatTheKernelNoLongerOffers) {
  Problem near = tuned_problem();
  near.query_len *= 2;
  for (const std::string gone : {"qt48", "qt32 w4", "no_such_field=3", ""}) {
    const TuningTable table = table_of({row_for(tuned_problem(), gone), row_for(near, "qt64")});
    const DefaultPlan choice = choice_for(tuned_problem(), table);
    EXPECT_EQ(choice.plan, third) << gone;
    EXPECT_EQ(choice.origin, DefaultPlan::Origin::nearby) << gone;
    EXPECT_EQ(choice.stale_rows, 1) << gone;
    EXPECT_EQ(to_string(choice),
              "tuned on NVIDIA H200 for " + to_string(near) +
                  ", the nearest that was; 1 row named a plan that the kernel does not offer here");
  }
  const DefaultPlan none =
      choice_for(tuned_problem(), table_of({row_for(tuned_problem(), "qt48")}));
  EXPECT_EQ(none.plan, first);
  EXPECT_EQ(none.origin, DefaultPlan::Origin::first);
}

TEST(DefaultPlan, MayBeAMixtureOfOfferedPlansThatTheKernelTakes) {
  const Plan wide{.query_tile = 32, .warps = 4}, ordered{.query_tile = 16, .grid_order = 2};
  KernelInfo kernel = kernel_offering({first, wide, ordered});
  const auto origin_of = [&](const std::string& plan) {
    const TuningTable table = table_of({row_for(tuned_problem(), plan)});
    return default_plan(kernel, tuned_problem(), gpu, table)->origin;
  };
  const std::string mixture = to_string(Plan{.query_tile = 32, .warps = 4, .grid_order = 2});
  EXPECT_EQ(origin_of(mixture), DefaultPlan::Origin::first);  // nobody says that it runs
  kernel.unsupported = [](const Problem&, const Plan&) { return std::nullopt; };
  EXPECT_EQ(origin_of(mixture), DefaultPlan::Origin::tuned);
  EXPECT_EQ(origin_of("qt32 w8"), DefaultPlan::Origin::first);  // a value that no Plan has
  kernel.unsupported = [](const Problem&, const Plan&) { return "these do not go together"; };
  EXPECT_EQ(origin_of(mixture), DefaultPlan::Origin::first);
  EXPECT_EQ(origin_of("qt16"), DefaultPlan::Origin::tuned);
}

TEST(DefaultPlan, IsNothingForAKernelThatOffersNone) {
  EXPECT_FALSE(default_plan(kernel_offering({}), tuned_problem(), gpu,
                            table_of({row_for(tuned_problem(), "qt32")})));
}

// By name, by size or by whether its feature is used.
TEST(TuningKey, TellsProblemsApartByTheFieldsThatEnterIt) {
  for (const ProblemField& field : problem_fields()) {
    Problem usual = problem_having(field), other = problem_with_other(field);
    for (Problem* const problem : {&usual, &other}) problem->query_len *= 64;  // no few queries
    const TuningKey a = tuning_key("kernel", usual, gpu), b = tuning_key("kernel", other, gpu);
    switch (field.in_tuning_key) {
      case InTuningKey::no:
        break;
      case InTuningKey::as_near_bucket:
        EXPECT_GT(octaves_between(a, b), 0) << field.name;
        break;
      default:
        EXPECT_NE(a, b) << field.name;
        EXPECT_EQ(octaves_between(a, b), std::nullopt) << field.name;
    }
    EXPECT_EQ(octaves_between(a, a), 0) << field.name;
  }
}

TEST(TuningKey, HasItsPartsInTheOrderOfTheFile) {
  std::vector<std::string_view> names;
  for (const TuningKeyPart& part : tuning_key("kernel", {}, gpu).problem) {
    names.push_back(part.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string_view>{
                "element_type", "mask", "head_dim", "value_dim", "softcap", "lengths", "padding",
                "window_left", "window_right", "group", "heads", "query_len", "key_len"}));
}

TEST(TuningKey, ReadsTheGpusNameFromTheDevicesDescription) {
  EXPECT_EQ(gpu_name_in("NVIDIA H200, sm_90, 132 SMs, 139.8 GiB"), "NVIDIA H200");
  EXPECT_EQ(gpu_name_in("one"), "one");
}

}  // namespace
}  // namespace attest
