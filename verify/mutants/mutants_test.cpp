#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/judge/law.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

using Kernels = std::vector<const KernelInfo*>;

template <typename Wanted>
Kernels mutants_where(const Wanted& is_wanted) {
  Kernels found;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role == KernelRole::mutant && is_wanted(kernel)) found.push_back(&kernel);
  }
  return found;
}

Kernels mutants_of(const std::string& host) {
  return mutants_where([&](const KernelInfo& mutant) { return mutant.planted_in == host; });
}

std::set<std::string> hosts() {
  std::set<std::string> names;
  for (const KernelInfo* mutant : mutants_where([](const KernelInfo&) { return true; })) {
    names.insert(mutant->planted_in);
  }
  return names;
}

/// Limit of processor time, in seconds. Cases of CPU kernels take hundredths of a second, those of
/// the executor up to seconds; a hang is waited for twice.
double most_seconds(Executor executor) {
  return executor == Executor::cpu ? 5 : 20;
}

/// Results of each of the mutants. They may crash, hang or write anywhere.
std::vector<KernelResult> judged(const Kernels& kernels, CampaignOptions options) {
  const double seconds = most_seconds(kernels.front()->executor);
  options.make_runner = [seconds] {
    return std::make_unique<IsolatedRunner>(Isolation{.limits = {.seconds = seconds}});
  };
  return run_campaign(kernels, options);
}

bool is_verdict(std::string_view name) {
  return name == name_of(Verdict::crashed) || name == name_of(Verdict::timed_out);
}

/// The middle value of `size` over the shrunk cases of all killed mutants.
std::int64_t median(const std::vector<KernelResult>& results,
                    const std::function<std::int64_t(const Case&)>& size) {
  std::vector<std::int64_t> sizes;
  for (const KernelResult& result : results) {
    if (result.failure) sizes.push_back(size(result.failure->the_case));
  }
  std::ranges::sort(sizes);
  return sizes.empty() ? 0 : sizes[sizes.size() / 2];
}

std::int64_t tiles(std::int64_t length, std::int64_t tile) {
  return tile == 0 ? 1 : (length + tile - 1) / tile;
}

/// One kernel and those of its mutants that were chosen (sample.py). CTest runs each test in a
/// process of its own, so they share the processors, and none takes long.
class MutantsOf : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kernel, MutantsOf, testing::ValuesIn(hosts()),
                         [](const auto& kernel) { return kernel.param; });

TEST_P(MutantsOf, EachIsKilledByTheLawItNames) {
  CampaignOptions options;
  // A killed one gets no more. Some need a size that one case of a hundred or two has.
  options.cases_per_kernel = 2000;
  options.cases_per_simt_kernel = 500;
  options.shrink.calls = 0;
  const std::vector<KernelResult> results = judged(mutants_of(GetParam()), options);
  ASSERT_FALSE(results.empty());
  for (const KernelResult& result : results) {
    const std::string& killer = result.kernel->killed_by;
    ASSERT_TRUE(find_law(killer) != nullptr || is_verdict(killer))
        << result.kernel->name << " names the unknown law " << killer;
    EXPECT_TRUE(result.is_as_expected())
        << result.kernel->name << ": "
        << (result.failure ? describe(*result.failure, *result.kernel) : "survived");
  }
}

// Of kernels on the CPU, where cases are cheap; shrink_summary_test.cpp asks it of the executor.
// A median, because some bugs need more: a wrong head map needs heads.
TEST(Mutants, TheMedianOfTheirCasesShrinksToOneHeadOfTwoTiles) {
  CampaignOptions options;
  options.cases_per_kernel = 500;
  options.shrink.candidate_seconds = 0.25;
  options.shrink.seconds_without_answer = 5;
  const std::vector<KernelResult> results = judged(
      mutants_where([](const KernelInfo& mutant) { return mutant.executor == Executor::cpu; }),
      options);
  EXPECT_EQ(median(results, [](const Case& c) { return c.problem.batch; }), 1);
  EXPECT_EQ(median(results, [](const Case& c) { return c.problem.query_heads; }), 1);
  EXPECT_LE(
      median(results, [](const Case& c) { return tiles(c.problem.query_len, c.plan.query_tile); }),
      2);
  EXPECT_LE(
      median(results, [](const Case& c) { return tiles(c.problem.key_len, c.plan.key_tile); }), 2);
}

}  // namespace
}  // namespace attest
