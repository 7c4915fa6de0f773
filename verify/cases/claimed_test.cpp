#include "verify/cases/claimed.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/run/registry.hpp"
#include "verify/cases/generators.hpp"

namespace attest {
namespace {

const KernelInfo& takes_everything() {
  return *find_kernel("m6_every_shape", Executor::cpu);
}

Case first_case(const KernelInfo& kernel) {
  return *draw_case(kernel, {}, 1, 0);
}

std::vector<std::string> not_shown(const KernelInfo& kernel, const std::set<std::string>& shown) {
  return claims_not_shown(kernel, first_case(kernel), shown, [](const Case&) { return true; });
}

bool holds(const std::vector<std::string>& facts, std::string_view fact) {
  return std::ranges::find(facts, fact) != facts.end();
}

TEST(Claims, EveryProbeShowsTheClaimItIsForAndTheKernelTakesIt) {
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role != KernelRole::kernel || kernel.executor == Executor::gpu) continue;
    for (const Claim& claim : claims_of(kernel, first_case(kernel))) {
      for (const Case& probe : claim.probes) {
        EXPECT_TRUE(facts_of(probe).contains(claim.fact)) << kernel.name << ": " << claim.fact;
        EXPECT_EQ(why_unsupported(kernel, probe), std::nullopt) << kernel.name;
        EXPECT_NO_THROW(validate(probe.problem)) << kernel.name << ": " << claim.fact;
      }
    }
  }
}

TEST(Claims, WhatADescriptionListsIsAFactOfSomeDrawnCase) {
  const KernelInfo& kernel = takes_everything();
  std::set<std::string> shown;
  for (std::uint64_t index = 0; index < 300; ++index) {
    shown.merge(facts_of(*draw_case(kernel, {}, 1, index)));
  }
  for (const Claim& claim : claims_of(kernel, first_case(kernel))) {
    if (claim.probes.empty()) {
      EXPECT_TRUE(shown.contains(claim.fact)) << claim.fact;
    }
  }
}

TEST(Claims, AClaimThatNoCaseShowedIsNamedAndOneThatACaseShowedIsNot) {
  const KernelInfo& kernel = takes_everything();
  const std::vector<std::string> all = not_shown(kernel, {});
  for (const std::string_view fact :
       {"fp32", "mask none", "mask window_top_left", "softcap", "lengths", "padding", "value_dim",
        "no queries", "no keys", "groups above 8", "query heads above 32", "batch above 64",
        "head_dim above 128"}) {
    EXPECT_TRUE(holds(all, fact)) << fact;
    EXPECT_FALSE(holds(not_shown(kernel, {std::string(fact)}), fact)) << fact;
  }
}

TEST(Claims, WhatAKernelRefusesItDoesNotClaim) {
  KernelInfo kernel = takes_everything();
  kernel.features = {};
  kernel.unsupported = [](const Problem& p, const Plan&) {
    return p.head_dim > 128 ? std::optional<std::string>("too wide") : std::nullopt;
  };
  const std::vector<std::string> all = not_shown(kernel, {});
  EXPECT_FALSE(holds(all, "head_dim above 128"));
  EXPECT_FALSE(holds(all, "softcap"));
  EXPECT_TRUE(holds(all, "groups above 8"));
  const auto in_the_worker = [](const Case& c) { return c.problem.batch <= 64; };
  const std::vector<std::string> taken =
      claims_not_shown(kernel, first_case(kernel), {}, in_the_worker);
  EXPECT_FALSE(holds(taken, "batch above 64"));
  EXPECT_TRUE(holds(taken, "groups above 8"));
}

TEST(Claims, EachListedHeadDimAndEachChoiceOfThePlansIsOne) {
  KernelInfo kernel = takes_everything();
  kernel.head_dims = {40, 64, 256};
  const std::vector<Plan> plans{{.key_tile = 16}, {.key_tile = 48, .pack_gqa = PackGqa::yes}};
  kernel.plans = [&](const Problem&) { return plans; };
  kernel.unsupported = {};
  Case shown = first_case(takes_everything());
  shown.problem.head_dim = 64;
  shown.plan = plans.front();
  const std::vector<std::string> left =
      claims_not_shown(kernel, shown, facts_of(shown), [](const Case&) { return true; });
  for (const std::string_view fact :
       {"head_dim 40", "head_dim 256", "key_tile 48", "pack_gqa yes"}) {
    EXPECT_TRUE(holds(left, fact)) << fact;
  }
  for (const std::string_view fact : {"head_dim 64", "key_tile 16"}) {
    EXPECT_FALSE(holds(left, fact)) << fact;
  }
}

}  // namespace
}  // namespace attest
