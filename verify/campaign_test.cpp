#include "verify/campaign.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/captured_inputs.hpp"
#include "core/error.hpp"
#include "core/input_family.hpp"
#include "core/registry.hpp"

namespace attest {
namespace {

std::vector<const KernelInfo*> kernels(const std::string& glob) {
  std::vector<const KernelInfo*> found;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role != KernelRole::mutant && matches_glob(kernel.name, glob))
      found.push_back(&kernel);
  }
  return found;
}

TEST(Campaign, TheOutcomeDoesNotDependOnTheNumberOfJobs) {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 40;
  std::vector<std::vector<KernelResult>> results;
  for (const int jobs : {1, 2, 3}) {
    options.jobs = jobs;
    results.push_back(run_campaign(kernels("o1*,o5*,k3*"), options));
  }
  for (const std::vector<KernelResult>& other : results) {
    for (std::size_t i = 0; i < other.size(); ++i) {
      EXPECT_EQ(other[i].failing_case, results[0][i].failing_case);
      EXPECT_EQ(other[i].worst_o_over_bound, results[0][i].worst_o_over_bound);
      EXPECT_EQ(other[i].verdict(), results[0][i].verdict());
      if (other[i].failure) {
        EXPECT_EQ(other[i].failure->the_case, results[0][i].failure->the_case);
      }
    }
  }
}

TEST(Campaign, TheNegativeControlIsKilledAndShrinksToASmallCaseWithALargeLogit) {
  const KernelResult result = run_campaign(kernels("o1_unshifted"), {}).front();
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_TRUE(result.is_as_expected());
  const Problem& p = result.failure->the_case.problem;
  EXPECT_EQ(p.batch * p.query_heads * p.query_len, 1);
  EXPECT_LE(p.key_len, 2);
  // exp overflows fp32 above ln(max).
  const Inputs inputs = make_inputs(p, result.failure->the_case.inputs);
  double largest = 0;
  for (std::int64_t key = 0; key < p.key_len; ++key) {
    double dot = 0;
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      dot += static_cast<double>(inputs.q.at(0, 0, 0, d)) * inputs.k.at(0, 0, key, d);
    }
    largest = std::max(largest, std::abs(p.scale * dot));
  }
  EXPECT_GT(largest, 80.0);
}

TEST(Campaign, TheNegativeControlIsKilledHoweverFewCasesAKernelGets) {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 1;
  for (options.seed = 1; options.seed <= 8; ++options.seed) {
    for (const KernelResult& result : run_campaign(kernels("o1*,o5*"), options)) {
      EXPECT_TRUE(result.is_as_expected()) << result.kernel->name << ", seed " << options.seed;
    }
  }
}

TEST(Campaign, EveryKernelObeysEveryLawOnRandomAndOnRealInputs) {
  static const bool added = (add_real_inputs(), true);
  ASSERT_TRUE(added);
  CampaignOptions options;
  options.cases_per_kernel = 12;
  options.cases_per_simt_kernel = 4;
  options.jobs = 2;
  options.seed = 20;
  options.laws.every_law = true;
  for (const std::string_view families : {"*", "real"}) {
    options.generator.families = families;
    for (const KernelResult& result :
         run_campaign(kernels("k*,f*,o2*,o3*,o4*,o5*,o6*,o7*,o8*,emulated*"), options)) {
      EXPECT_EQ(result.verdict(), Verdict::passed)
          << result.kernel->name
          << (result.failure ? "\n" + describe(*result.failure, *result.kernel) : "");
      EXPECT_GT(result.certified_rows, 0);
      EXPECT_GE(result.checks.size(), 13U) << result.kernel->name;
    }
  }
}

TEST(Campaign, ATimeLimitEndsItAndSharesTheTimeBetweenTheKernels) {
  CampaignOptions options;
  options.time_limit = std::chrono::milliseconds(300);
  const std::vector<KernelResult> results = run_campaign(kernels("o5*,o6*"), options);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_GT(results[0].cases, 0);
  EXPECT_LE(std::abs(results[0].cases - results[1].cases), 1);
}

TEST(Campaign, AKernelThatCannotLaunchIsAMachineErrorNotAPass) {
  KernelInfo broken = *kernels("o5*").front();
  broken.launch = [](const Arguments&, Device&) { throw MachineError("launch failed"); };
  EXPECT_THROW((void)run_campaign({&broken}, {}), MachineError);
}

TEST(Campaign, AKernelThatSupportsNothingIsNotCalledPassed) {
  KernelInfo picky = *kernels("o5*").front();
  picky.unsupported = [](const Problem&, const Plan&) {
    return std::optional<std::string>("never");
  };
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 3;
  const KernelResult result = run_campaign({&picky}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::unsupported);
  EXPECT_FALSE(result.is_as_expected());
}

}  // namespace
}  // namespace attest
