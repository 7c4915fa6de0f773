#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/registry.hpp"
#include "verify/campaign.hpp"
#include "verify/property.hpp"

namespace attest {
namespace {

std::vector<const KernelInfo*> mutants() {
  std::vector<const KernelInfo*> found;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role == KernelRole::mutant) found.push_back(&kernel);
  }
  return found;
}

/// One campaign for all tests of this file: mutants side by side, each judged by the law it names.
const std::vector<KernelResult>& campaign() {
  static const std::vector<KernelResult> results = [] {
    CampaignOptions options;
    options.cases_per_kernel = 150;
    options.jobs = 2;
    return run_campaign(mutants(), options);
  }();
  return results;
}

TEST(Mutants, EveryPlantedBugIsKilledByTheLawItNames) {
  ASSERT_FALSE(campaign().empty());
  for (const KernelResult& result : campaign()) {
    ASSERT_NE(find_property(result.kernel->killed_by), nullptr)
        << result.kernel->name << " names the unknown law " << result.kernel->killed_by;
    EXPECT_TRUE(result.failure.has_value())
        << result.kernel->name << " survived " << result.cases << " cases";
  }
}

TEST(Mutants, AKilledMutantShrinksToAFewRowsOfOneHead) {
  for (const KernelResult& result : campaign()) {
    if (!result.failure) continue;
    const Problem& p = result.failure->the_case.problem;
    const Plan& plan = result.failure->the_case.plan;
    EXPECT_EQ(p.batch, 1) << to_string(result.failure->the_case);
    EXPECT_EQ(p.query_heads, 1) << to_string(result.failure->the_case);
    EXPECT_LE(p.query_len, 2 * plan.query_tile) << to_string(result.failure->the_case);
    EXPECT_LE(p.key_len, 2 * plan.key_tile) << to_string(result.failure->the_case);
  }
}

TEST(Mutants, TheKernelsTheyWerePlantedInPassTheSameCases) {
  std::vector<const KernelInfo*> kernels;
  for (const std::string_view name : {"k1_naive", "k2_coalesced", "k3_sequence_parallel"}) {
    kernels.push_back(find_kernel(name, Executor::simt));
    ASSERT_NE(kernels.back(), nullptr) << name;
  }
  CampaignOptions options;
  options.cases_per_kernel = 150;
  options.jobs = 2;
  options.laws.glob = "within_bound,clean_execution";
  for (const KernelResult& result : run_campaign(kernels, options)) {
    EXPECT_EQ(result.verdict(), Verdict::passed)
        << (result.failure ? describe(*result.failure, *result.kernel) : result.vacuous_reason);
  }
}

}  // namespace
}  // namespace attest
