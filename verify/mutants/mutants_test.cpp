#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.hpp"
#include "verify/campaign.hpp"
#include "verify/isolated_runner.hpp"
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

/// A planted bug may crash, hang or write anywhere. A case of the slowest kernel takes seconds, on
/// a busy machine many.
std::unique_ptr<CaseRunner> isolated() {
  return std::make_unique<IsolatedRunner>(Isolation{});
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

// One test for both laws: CTest runs each test in a process of its own, and the campaign is long.
TEST(Mutants, EachIsKilledByTheLawItNamesAndTheMedianShrinksToOneHeadOfTwoTiles) {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 500;  // a killed one gets no more
  options.jobs = 2;
  options.make_runner = isolated;
  options.shrink.candidate_seconds = 0.25;
  options.shrink.seconds_without_answer = 5;
  const std::vector<KernelResult> results = run_campaign(mutants(), options);

  ASSERT_FALSE(results.empty());
  for (const KernelResult& result : results) {
    const std::string& killer = result.kernel->killed_by;
    ASSERT_TRUE(find_property(killer) != nullptr || is_verdict(killer))
        << result.kernel->name << " names the unknown law " << killer;
    EXPECT_TRUE(result.is_as_expected())
        << result.kernel->name << ": "
        << (result.failure ? describe(*result.failure, *result.kernel) : "survived");
  }
  // A median, because some bugs need more: a wrong head map needs heads.
  EXPECT_EQ(median(results, [](const Case& c) { return c.problem.batch; }), 1);
  EXPECT_EQ(median(results, [](const Case& c) { return c.problem.query_heads; }), 1);
  EXPECT_LE(
      median(results, [](const Case& c) { return tiles(c.problem.query_len, c.plan.query_tile); }),
      2);
  EXPECT_LE(
      median(results, [](const Case& c) { return tiles(c.problem.key_len, c.plan.key_tile); }), 2);
}

TEST(Mutants, TheKernelsTheyWerePlantedInPassTheFirstOfTheSameCases) {
  std::set<const KernelInfo*> kernels;
  std::string laws;
  for (const KernelInfo* mutant : mutants()) {
    kernels.insert(find_kernel(mutant->planted_in, mutant->executor));
    ASSERT_FALSE(kernels.contains(nullptr)) << mutant->planted_in;
    if (!is_verdict(mutant->killed_by)) laws += mutant->killed_by + ",";
  }
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 25;
  options.jobs = 2;
  options.make_runner = isolated;
  options.laws.glob = laws;
  options.laws.every_law = true;
  for (const KernelResult& result : run_campaign({kernels.begin(), kernels.end()}, options)) {
    EXPECT_EQ(result.verdict(), Verdict::passed)
        << (result.failure ? describe(*result.failure, *result.kernel) : result.vacuous_reason);
  }
}

}  // namespace
}  // namespace attest
