#include "verify/campaign/campaign.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/inputs/captured_inputs.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/out_of_device_memory.hpp"
#include "core/run/registry.hpp"

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
  options.cases_per_kernel = 20;
  options.cases_per_simt_kernel = 8;
  std::vector<std::vector<KernelResult>> results;
  for (const int jobs : {1, 3}) {
    options.jobs = jobs;
    results.push_back(run_campaign(kernels("o1*,o5*,k3*"), options));
  }
  for (const std::vector<KernelResult>& other : results) {
    for (std::size_t i = 0; i < other.size(); ++i) {
      EXPECT_EQ(other[i].failing_case, results[0][i].failing_case);
      EXPECT_EQ(other[i].worst_over_bound.of("o"), results[0][i].worst_over_bound.of("o"));
      EXPECT_EQ(other[i].verdict(), results[0][i].verdict());
      if (other[i].failure) {
        EXPECT_EQ(other[i].failure->the_case, results[0][i].failure->the_case);
      }
    }
  }
}

TEST(Campaign, TheNegativeControlIsKilledWhateverACampaignIsNarrowedTo) {
  CampaignOptions narrow;
  narrow.generator.families = "zero_q";
  narrow.generator.max_len = 4;
  narrow.cases_per_kernel = 1;
  EXPECT_TRUE(run_campaign(kernels("o1_unshifted"), narrow).front().is_as_expected());
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
      dot += static_cast<double>(inputs[forward::q].at(0, 0, 0, d)) *
             inputs[forward::k].at(0, 0, key, d);
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

/// Every law on every case.
void expect_obedience(const std::string& glob, const std::string& families, std::int64_t cases) {
  static const bool added = (add_real_inputs(), true);
  ASSERT_TRUE(added);
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = cases;
  options.jobs = 2;
  options.seed = 20;
  options.laws.every_law = true;
  options.generator.families = families;
  for (const KernelResult& result : run_campaign(kernels(glob), options)) {
    EXPECT_EQ(result.verdict(), Verdict::passed)
        << result.kernel->name
        << (result.failure ? "\n" + describe(*result.failure, *result.kernel) : "");
    EXPECT_GT(result.certified_rows, 0);
    EXPECT_GE(result.checks.size(), 13U) << result.kernel->name;
  }
}

TEST(Campaign, EveryKernelOfTheCpuObeysEveryLaw) {
  expect_obedience("f2*,o2*,o3*,o4*,o5*,o6*,o7*,o8*,emulated*", "*", 5);
}

// Random inputs are what `attest verify` has; it takes a minute.
TEST(Campaign, EveryKernelObeysEveryLawOnRealInputs) {
  expect_obedience("k*,f*,o2*,o3*,o4*,o5*,o6*,o7*,o8*,emulated*", "real", 1);
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
  broken.launch = [](const ForwardArguments&, Device&) { throw MachineError("launch failed"); };
  EXPECT_THROW((void)run_campaign({&broken}, {}), MachineError);
}

TEST(Campaign, ACaseThatTheDeviceHasNoRoomForIsDrawnAgainAndCounted) {
  KernelInfo greedy = *find_kernel("k1_naive", Executor::simt);
  const auto workspace = greedy.workspace_bytes;
  greedy.workspace_bytes = [workspace](const Problem& problem, const Plan& plan) {
    if (problem.batch > 1) throw OutOfDeviceMemory("the workspace does not fit");
    return workspace(problem, plan);
  };
  CampaignOptions options;
  options.cases_per_simt_kernel = 8;
  const KernelResult result = run_campaign({&greedy}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::passed);
  EXPECT_EQ(result.cases, 8);
  EXPECT_GT(result.refusals.count(), 0);
}

TEST(Campaign, TroubleWithTheMachineNamesTheKernelAndTheCase) {
  KernelInfo broken = *kernels("o5*").front();
  broken.launch = [](const ForwardArguments&, Device&) { throw MachineError("launch failed"); };
  try {
    (void)run_campaign({&broken}, {});
    ADD_FAILURE() << "it went on";
  } catch (const MachineError& error) {
    EXPECT_TRUE(
        std::string_view(error.what()).starts_with("launch failed; case 0 on cpu: o5_deferred | b"))
        << error.what();
  }
}

/// A worker whose kernel has more to say than the campaign knows, as a plugin's has.
class RefusingRunner : public CaseRunner {
 public:
  using Taken = std::function<bool(const Problem&)>;
  explicit RefusingRunner(Taken is_taken) : is_taken_(std::move(is_taken)) {}
  CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override {
    if (is_taken_(task.the_case.problem)) return runner_.run(kernel, task);
    CaseAnswer answer;
    answer.verdict.verdict = Verdict::unsupported;
    answer.verdict.reason = "takes other sizes";
    return answer;
  }

 private:
  Taken is_taken_;
  InProcessRunner runner_;
};

CampaignOptions refusing_options(const RefusingRunner::Taken& is_taken) {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 40;
  options.laws.glob = "within_bound";
  options.make_runner = [=] { return std::make_unique<RefusingRunner>(is_taken); };
  return options;
}

bool is_multiple_of_64(const Problem& p) {
  return p.query_len > 0 && p.key_len > 0 && p.query_len % 64 == 0 && p.key_len % 64 == 0;
}

TEST(Campaign, WhatAKernelRefusesInTheWorkerIsDrawnAgainUntilItGetsAllOfItsCases) {
  const KernelResult result =
      run_campaign(kernels("o5*"), refusing_options(is_multiple_of_64)).front();
  EXPECT_EQ(result.cases, 40);
  EXPECT_EQ(result.asked(), 40);
  EXPECT_EQ(result.verdict(), Verdict::passed);
  EXPECT_GT(result.refusals.count(), 40);
  EXPECT_EQ(result.refusals.most_frequent().text, "takes other sizes");
  EXPECT_EQ(result.drawn, result.cases + result.refusals.count());
}

TEST(Campaign, WhatIsRefusedDoesNotDependOnTheNumberOfJobsOrOnShards) {
  CampaignOptions options = refusing_options(is_multiple_of_64);
  const KernelResult whole = run_campaign(kernels("o5*"), options).front();
  options.jobs = 3;
  const KernelResult threads = run_campaign(kernels("o5*"), options).front();
  EXPECT_EQ(threads.drawn, whole.drawn);
  EXPECT_EQ(threads.refusals, whole.refusals);
  EXPECT_EQ(threads.facts, whole.facts);
  EXPECT_EQ(threads.example, whole.example);
  EXPECT_EQ(threads.never_judged, whole.never_judged);
  std::int64_t drawn = 0, decided = 0;
  for (options.shard = {.index = 0, .count = 3}; options.shard.index < 3; ++options.shard.index) {
    const KernelResult part = run_campaign(kernels("o5*"), options).front();
    EXPECT_EQ(part.asked(), cases_of_shard(*kernels("o5*").front(), options));
    EXPECT_EQ(part.verdict(), Verdict::passed);
    drawn += part.drawn;
    decided += part.decided;
  }
  EXPECT_EQ(drawn, whole.drawn);
  EXPECT_EQ(decided, whole.decided);
}

TEST(Campaign, AKernelThatTakesLessThanHalfOfItsCasesIsInconclusive) {
  const auto options = refusing_options([](const Problem& p) { return p.query_len == 13; });
  const KernelResult result = run_campaign(kernels("o5*"), options).front();
  EXPECT_GT(result.cases, 0) << "some are judged";
  EXPECT_EQ(result.asked(), 40);
  EXPECT_EQ(result.verdict(), Verdict::inconclusive);
  EXPECT_FALSE(result.is_as_expected());
}

TEST(Campaign, AKernelThatSupportsNothingIsInconclusiveWithItsSentence) {
  KernelInfo picky = *kernels("o5*").front();
  picky.unsupported = [](const Problem&, const Plan&) {
    return std::optional<std::string>("never");
  };
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 3;
  const KernelResult result = run_campaign({&picky}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::inconclusive);
  EXPECT_FALSE(result.is_as_expected());
  EXPECT_EQ(result.given_up, 3);
  EXPECT_EQ(result.refusals.most_frequent().text, "never");
  EXPECT_EQ(result.refusals.count(), result.drawn);
}

TEST(Campaign, UnderATimeLimitItIsInconclusiveIfMostOfWhatWasReachedWasRefused) {
  CampaignOptions options = refusing_options([](const Problem& p) { return p.query_len == 13; });
  options.time_limit = std::chrono::milliseconds(200);
  const KernelResult result = run_campaign(kernels("o5*"), options).front();
  EXPECT_GT(result.asked(), result.cases);
  EXPECT_EQ(result.verdict(), Verdict::inconclusive);
}

TEST(Campaign, AClaimThatNoCaseShowedIsNamedAndAPluginIsAskedForIt) {
  CampaignOptions options = refusing_options([](const Problem& p) { return p.batch <= 64; });
  options.cases_per_kernel = options.cases_per_simt_kernel = 2;
  options.generator.max_head_dim = 16;
  const auto names = [](const KernelResult& result, std::string_view fact) {
    return std::ranges::find(result.never_judged, fact) != result.never_judged.end();
  };
  const KernelResult ours = run_campaign(kernels("o5*"), options).front();
  EXPECT_TRUE(names(ours, "head_dim above 128"));
  EXPECT_TRUE(names(ours, "batch above 64")) << "what it takes is known without a worker";
  KernelInfo plugin = *kernels("o5*").front();
  plugin.plugin = "mine.so";
  const KernelResult theirs = run_campaign({&plugin}, options).front();
  EXPECT_TRUE(names(theirs, "head_dim above 128"));
  EXPECT_FALSE(names(theirs, "batch above 64"));
}

}  // namespace
}  // namespace attest
