#include "verify/campaign/shared_campaign.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

/// One of them is wrong, and fails after some chunks.
std::vector<const KernelInfo*> kernels() {
  return {find_kernel("o5_deferred", Executor::cpu), find_kernel("o1_unshifted", Executor::cpu)};
}

CampaignOptions small() {
  CampaignOptions options;
  options.cases_per_kernel = 45;
  options.generator.max_len = 20;
  options.laws.glob = "within_bound";
  options.regressions = all_regressions();
  return options;
}

/// Findings of a campaign, but for what shrinking adds and for times.
std::vector<Json> found(const std::vector<KernelResult>& results) {
  std::vector<Json> all;
  for (const KernelResult& result : results) {
    Json& json = all.emplace_back(to_json(result));
    for (const char* key : {"seconds", "failure", "is_shrunk", "never_judged"}) json.erase(key);
  }
  return all;
}

std::vector<KernelResult> of_one_process(const CampaignOptions& options) {
  CampaignOptions alone = options;
  alone.jobs = 1;
  alone.shrink.calls = 0;
  return run_campaign(kernels(), alone);
}

/// Results of `count` processes in one folder, as the one that reports has them.
std::vector<KernelResult> of_processes(int count, const std::filesystem::path& folder,
                                       const CampaignOptions& options) {
  const auto asked = kernels();
  std::vector<Share> shares(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> processes;
    for (Share& share : shares) {
      processes.emplace_back([&] {
        SharedCampaign shared(folder, asked, options);
        (void)shared.join({.program = "this", .arguments = {"--cases=45"}});
        share = shared.take_part();
      });
    }
  }
  std::erase_if(shares, [](const Share& share) { return !share.whole; });
  return shares.empty() ? std::vector<KernelResult>{} : *shares.front().whole;
}

TEST(SharedCampaign, PutTogetherItIsWhatOneProcessFinds) {
  const TemporaryFolder folder;
  EXPECT_EQ(found(of_processes(3, folder, small())), found(of_one_process(small())));
}

TEST(SharedCampaign, WhatADeadProcessHadClaimedIsJudgedByAnother) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "chunks");
  const std::filesystem::path claim = folder / "chunks/2.claim1";
  std::ofstream(claim) << "";
  std::filesystem::last_write_time(
      claim, std::filesystem::last_write_time(claim) - 2 * SharedClaims::dead_after);
  EXPECT_EQ(found(of_processes(1, folder, small())), found(of_one_process(small())));
}

TEST(SharedCampaign, OneProcessGoesOnWithTheChunksThatSeveralLeft) {
  const TemporaryFolder folder;
  const std::vector<KernelResult> whole = of_processes(2, folder, small());
  std::filesystem::remove(folder / "chunks/2.judged.json");
  CampaignOptions options = small();
  options.shrink.calls = 0;
  for (const KernelInfo* kernel : kernels()) options.resume_from.emplace_back().kernel = kernel;
  for (int times = 0; times < 2; ++times) absorb_chunks(folder, options.resume_from);
  EXPECT_EQ(found(run_campaign(kernels(), options)), found(whole));
}

TEST(SharedCampaign, AnotherCampaignInItsFolderIsRefused) {
  const TemporaryFolder folder;
  const auto asked = kernels();
  const auto fewer = std::vector{asked.front()};
  const CampaignOptions options = small();
  const CampaignState begun{.program = "this", .arguments = {"--seed=1"}};
  (void)SharedCampaign(folder, asked, options).join(begun);
  const auto refused = [&](const std::vector<const KernelInfo*>& mine, const CampaignState& state) {
    try {
      (void)SharedCampaign(folder, mine, options).join(state);
      return std::string("no");
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refused(asked, begun), "no");
  EXPECT_NE(refused(asked, {.program = "that", .arguments = {"--seed=1"}})
                .find("begun by the program of commit 'this', here it is 'that'; allowed: "),
            std::string::npos);
  EXPECT_NE(refused(asked, {.program = "this", .arguments = {"--seed=2"}}).find("'--seed=2'"),
            std::string::npos);
  EXPECT_NE(refused(fewer, begun).find("with the kernels"), std::string::npos);
}

}  // namespace
}  // namespace attest
