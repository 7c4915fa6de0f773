// What a reference that lags behind the maximum costs in error.
#include <gtest/gtest.h>

#include <string>

#include "core/run/registry.hpp"
#include "experiments/errors/error_axes.hpp"
#include "experiments/errors/error_rows.hpp"

namespace attest {
namespace {

/// RMSE of O of the executor's fa3_wgmma on normal inputs.
double rmse(const Problem& problem, const Plan& plan) {
  const KernelInfo& kernel = *find_kernel("fa3_wgmma", Executor::simt);
  ErrorsRow row{.the_case = {.kernel = kernel.name,
                             .problem = problem,
                             .plan = plan,
                             .inputs = {.family = "normal", .seed = 1}},
                .kernel = &kernel};
  Devices devices;
  measure(row, devices.of(kernel), 0, {});
  return row.outputs.front().errors.value("rmse");
}

// The largest weight is then exactly 1, and no longer rounded like the others.
TEST(LaggingErrors, AKernelErrsLessWhereEveryTilesMaximumIsLookedFor) {
  for (const std::string mask : {"none", "causal_top_left"}) {
    const Problem problem = problem_from_string("h1 q192 k512 d64 bf16 " + mask);
    Plan plan = find_kernel("fa3_wgmma", Executor::simt)->plans(problem).front();
    const double lagging = rmse(problem, plan);
    plan.reference = WeightReference::maximum;
    EXPECT_LT(rmse(problem, plan), lagging) << to_string(problem);
  }
}

}  // namespace
}  // namespace attest
