// What fa3_wgmma offers for windows, padding, softcaps and V of another dim than K, and how it
// refuses the rest.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

const KernelInfo& fa3_wgmma() {
  return *find_kernel("fa3_wgmma", Executor::simt);
}
std::string refusal(const Problem& problem, const Plan& plan) {
  return why_unsupported(fa3_wgmma(), problem, plan).value_or("");
}

TEST(MaskedPlans, AreOfOneTileForEachHeadDimAndOthersAreRefusedByName) {
  for (const std::string mask :
       {"window_top_left left70", "window_bottom_right left9 right0", "causal_top_left padding3",
        "softcap20", "sinks_given", "gate_given", "causal_top_left residual_given"}) {
    const bool ends_rows = mask.ends_with("_given");
    for (const std::string head_dim : {"d8", "d64", "d96", "d128", "d192", "d256"}) {
      const Problem problem = problem_from_string("h4/2 q130 k200 " + head_dim + " bf16 " + mask);
      const std::vector<Plan> plans = fa3_wgmma().plans(problem);
      if (has_epilogue(problem) && problem.head_dim > 128) {
        EXPECT_TRUE(plans.empty()) << to_string(problem);
        continue;
      }
      EXPECT_GT(plans.size(), 3U) << to_string(problem);
      // What rows end with leaves a problem of few columns the tiles of a dense one.
      const Problem dense = problem_from_string("h4/2 q130 k200 " + head_dim + " bf16");
      const std::int64_t key_tile =
          ends_rows && problem.head_dim <= 64 ? fa3_wgmma().plans(dense).front().key_tile : 64;
      for (const Plan& plan : plans) {
        EXPECT_EQ(why_unsupported(fa3_wgmma(), problem, plan), std::nullopt) << to_string(plan);
        EXPECT_EQ(plan.key_tile, key_tile) << to_string(plan);
        EXPECT_EQ(plan.query_tile, plans.front().query_tile) << to_string(plan);
      }
      for (const auto field : {&Plan::key_splits, &Plan::pack_gqa, &Plan::ping_pong}) {
        Plan other = plans.front();
        other.*field = 2;
        EXPECT_NE(refusal(problem, other).find("compiled for windows"), std::string::npos)
            << to_string(other);
      }
    }
  }
}

TEST(MaskedPlans, LengthsAndListsOfKeysAreRefusedBesideMasksAndModifiedScores) {
  for (const std::string mask :
       {"window_top_left left9 right0", "padding3", "softcap20", "sinks_given", "slopes_given",
        "prefix5", "documents5", "gate_given", "residual_given"}) {
    const Problem masked = problem_from_string("n256 d64 fp16 " + mask);
    const Plan plan = fa3_wgmma().plans(masked).front();
    for (const std::string what : {" lengths3", " lists5 listrows128 listkeys64"}) {
      const Problem problem = problem_from_string(to_string(masked) + what);
      EXPECT_TRUE(fa3_wgmma().plans(problem).empty()) << what;
      EXPECT_NE(refusal(problem, plan).find(": no lengths and lists of keys"), std::string::npos)
          << refusal(problem, plan);
    }
    EXPECT_NE(fa3_wgmma().unsupported_in_pages(masked, plan), std::nullopt);
  }
}

TEST(MaskedPlans, OfAValueDimOfItsOwnAreToTheSizesThatAreCompiledAndBesideNothingElse) {
  for (const std::string dims : {"d192 dv128", "d128 dv64", "d64 dv128", "d24 dv8"}) {
    for (const std::string mask : {"none", "causal_bottom_right"}) {
      const Problem problem = problem_from_string("h4/2 q130 k200 bf16 " + dims + " " + mask);
      const std::vector<Plan> plans = fa3_wgmma().plans(problem);
      ASSERT_FALSE(plans.empty()) << to_string(problem);
      for (const std::string what : {" lengths3", " padding3", " softcap20"}) {
        EXPECT_NE(refusal(problem_from_string(to_string(problem) + what), plans.front()), "");
      }
    }
  }
  for (const std::string dims : {"d200 dv128", "d192 dv136"}) {
    const Problem problem = problem_from_string("q130 k200 bf16 " + dims);
    EXPECT_TRUE(fa3_wgmma().plans(problem).empty());
    EXPECT_NE(refusal(problem, {}).find("allowed where they differ: to 192 and 128"),
              std::string::npos)
        << refusal(problem, {});
  }
}

}  // namespace
}  // namespace attest
