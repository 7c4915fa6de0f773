#include "verify/campaign/shrink_failure.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

/// The kernel, which leaves the first row of O at 0.
KernelInfo without_the_first_row(const KernelInfo& kernel) {
  KernelInfo wrong = kernel;
  wrong.launch = [&kernel](const Arguments& a, Device& device) {
    kernel.launch(a, device);
    const auto columns = static_cast<std::size_t>(a.problem.output_dim());
    std::memset(a[forward::o].data, 0, columns * format_of(a.problem.element_type).size_bytes);
  };
  return wrong;
}

Failure failure_of(const KernelInfo& kernel) {
  const Problem problem{.batch = 2, .query_len = 40, .key_len = 70, .head_dim = 16};
  return {.law = "within_bound",
          .the_case = {.kernel = kernel.name,
                       .problem = problem,
                       .plan = kernel.plans(problem).front(),
                       .inputs = {.family = "normal"}}};
}

TEST(ShrinkFailure, TheLimitOfTimeEndsItAndTheFailureSaysHowFarItGot) {
  const KernelInfo& right = *find_kernel("m6_every_shape", Executor::cpu);
  const KernelInfo wrong = without_the_first_row(right);
  InProcessRunner runner;
  const Failure whole = shrink_failure(runner, wrong, failure_of(wrong), {});
  EXPECT_EQ(whole.the_case.problem.query_len, 1);
  EXPECT_EQ(whole.shrinking, "");
  const Failure cut = shrink_failure(runner, wrong, failure_of(wrong), {.seconds = 0});
  EXPECT_EQ(cut.the_case, failure_of(wrong).the_case);
  EXPECT_EQ(cut.shrinking, "ended after 0 s and 0 cases; attest verify --minimize goes on");
  EXPECT_NE(describe(cut, wrong).find("  shrunk   ended after"), std::string::npos);
  const Failure counted = shrink_failure(runner, wrong, failure_of(wrong), {.calls = 3});
  EXPECT_NE(counted.shrinking.find("and 3 cases"), std::string::npos) << counted.shrinking;
}

TEST(ShrinkFailure, WhoeverWatchesIsToldOfEachCaseThatIsTried) {
  const KernelInfo& right = *find_kernel("m6_every_shape", Executor::cpu);
  const KernelInfo wrong = without_the_first_row(right);
  InProcessRunner runner;
  int told = 0;
  (void)shrink_failure(runner, wrong, failure_of(wrong), {}, [&](int tried) {
    EXPECT_EQ(tried, told);
    ++told;
  });
  EXPECT_GT(told, 3);
}

}  // namespace
}  // namespace attest
