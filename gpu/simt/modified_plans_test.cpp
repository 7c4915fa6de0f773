// What fa2_mma offers for score modifications, and how it refuses the rest.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

const KernelInfo& fa2_mma() {
  return *find_kernel("fa2_mma", Executor::simt);
}

TEST(ModifiedPlans, AreOfTheOneTileThatIsCompiledAndOthersAreRefusedByName) {
  for (const std::string what :
       {"sinks_given", "slopes_given", "bias_shared", "prefix3", "documents3", "dropout0.1"}) {
    for (const std::string head_dim : {"d32", "d64", "d96", "d128", "d256"}) {
      const Problem problem =
          problem_from_string("h4/2 q130 k200 " + head_dim + " causal_top_left bf16 " + what);
      const std::vector<Plan> plans = fa2_mma().plans(problem);
      EXPECT_GT(plans.size(), 3U) << to_string(problem);
      for (const Plan& plan : plans) {
        EXPECT_EQ(why_unsupported(fa2_mma(), problem, plan), std::nullopt) << to_string(plan);
        EXPECT_EQ(plan.query_tile, 64) << to_string(plan);
      }
      Plan wide = plans.front();
      wide.query_tile = 128;
      wide.warps = head_dim == "d256" ? 8 : 4;
      wide.stages = 2;
      const std::string why = why_unsupported(fa2_mma(), problem, wide).value_or("");
      EXPECT_NE(why.find("qt128"), std::string::npos) << why;
      EXPECT_NE(why.find("dropout: qt64 kt64 w4"), std::string::npos) << why;
    }
  }
}

// Terms are divided by a positive scale; other scales multiply the scores before.
TEST(ModifiedPlans, AScaleThatTermsCannotBeDividedByIsRefusedAndOnlyWithTerms) {
  for (const std::string what : {"slopes_given", "bias_full", "sinks_given"}) {
    for (const float scale : {0x1p-65F, 0x1p65F, 0x1p-64F, 0x1p64F, 0.0F, -0x1p-65F}) {
      Problem problem = problem_from_string("q3 k5 d16 fp16 " + what);
      const Plan plan = fa2_mma().plans(problem).front();
      problem.scale = scale;
      const bool is_far = scale == 0x1p-65F || scale == 0x1p65F;
      const bool is_refused = why_unsupported(fa2_mma(), problem, plan).has_value();
      EXPECT_EQ(is_refused, is_far && what != "sinks_given") << to_string(problem);
      EXPECT_EQ(fa2_mma().plans(problem).empty(), is_refused) << to_string(problem);
    }
  }
}

}  // namespace
}  // namespace attest
