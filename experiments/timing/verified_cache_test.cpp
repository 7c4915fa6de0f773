#include "experiments/timing/verified_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/temporary_folder.hpp"
#include "experiments/study/run_test.hpp"
#include "experiments/timing/build_id.hpp"

namespace attest {
namespace {

struct AVerifiedCache : testing::Test {
  TemporaryFolder folder;
  std::filesystem::path file = folder / "verified.jsonl";
  const KernelInfo& kernel = *find_kernel("o5_deferred", Executor::cpu);
  Case c = case_of(kernel, "n16 d8");

  bool holds(const std::string& build, const std::string& device = "gpu") const {
    return VerifiedCache(file, build, device).holds(kernel, c);
  }
};

TEST_F(AVerifiedCache, RemembersWhatPassedForThisBuildAndDeviceAlone) {
  VerifiedCache cache(file, "a", "gpu");
  EXPECT_FALSE(cache.holds(kernel, c));
  cache.add(kernel, c);
  EXPECT_TRUE(cache.holds(kernel, c));
  EXPECT_TRUE(holds("a"));
  EXPECT_FALSE(holds("b")) << "another build";
  EXPECT_FALSE(holds("a", "another gpu"));
}

TEST_F(AVerifiedCache, TellsPlansProblemsAndExecutorsApart) {
  VerifiedCache cache(file, "a", "gpu");
  cache.add(kernel, c);
  Case other = c;
  other.plan.key_tile += 1;
  EXPECT_FALSE(cache.holds(kernel, other));
  other = c;
  other.problem.head_dim = 9;
  EXPECT_FALSE(cache.holds(kernel, other));
  KernelInfo elsewhere = kernel;
  elsewhere.executor = Executor::simt;
  EXPECT_FALSE(cache.holds(elsewhere, c));
}

TEST_F(AVerifiedCache, IgnoresWhatIsDamagedAndGoesOnAfterIt) {
  VerifiedCache(file, "a", "gpu").add(kernel, c);
  const auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size / 2);  // killed while it wrote
  EXPECT_FALSE(holds("a"));
  VerifiedCache(file, "a", "gpu").add(kernel, c);
  EXPECT_TRUE(holds("a"));
  std::ofstream(file, std::ios::app) << "[1]\n{\"build\": 3}\nnonsense\n";
  EXPECT_TRUE(holds("a"));
}

TEST_F(AVerifiedCache, SaysNoToALineThatDoesNotSayPassed) {
  std::ofstream(file) << R"({"build":"a","device":"gpu","case":"cpu )" << to_string(c)
                      << R"(","passed":false})"
                      << "\n";
  EXPECT_FALSE(holds("a"));
}

TEST(BuildId, IsTheSameEveryTimeAndNotEmpty) {
  EXPECT_GE(build_id().size(), 16U);
  EXPECT_EQ(build_id(), build_id());
}

}  // namespace
}  // namespace attest
