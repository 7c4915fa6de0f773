#include "experiments/timing/sampled_lists.hpp"

#include <gtest/gtest.h>

#include "core/operations/select_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

TEST(SampledLists, OfARightChoiceAreRightAndAnotherKeyOrScoreIsFound) {
  const KernelInfo& right = *find_kernel("select_rows", Executor::cpu);
  KernelInfo wrong_key = right, wrong_score = right;
  HostMemoryDevice device;
  const Problem problem =
      problem_from_string("select b2 h6/2 q9 k133 d17 bf16 causal_bottom_right padding3 top12");
  wrong_key.launch = [&](const Arguments& all, Device& there) {
    right.launch(all, there);
    // The last query's: its first key a second time.
    std::int32_t* const list = SelectArguments(all).keys + 17 * problem.top_k;
    list[11] = list[0];
  };
  wrong_score.launch = [&](const Arguments& all, Device& there) {
    right.launch(all, there);
    float* const scores = SelectArguments(all).scores;
    std::swap(scores[0], scores[1]);
  };
  ResidentProblem resident(problem, {}, device);
  EXPECT_EQ(launch_and_sample(resident, right, {}).why_wrong(), std::nullopt);
  const auto key = launch_and_sample(resident, wrong_key, {}).why_wrong();
  EXPECT_TRUE(key && key->starts_with("keys at [1, 0, 8, ")) << key.value_or("");
  const auto score = launch_and_sample(resident, wrong_score, {}).why_wrong();
  EXPECT_TRUE(score && score->starts_with("scores at [0, 0, 0, ")) << score.value_or("");
}

}  // namespace
}  // namespace attest
