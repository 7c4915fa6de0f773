#include <gtest/gtest.h>

#include <string_view>

#include "core/inputs/input_family.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"

namespace attest {
namespace {

// A launch that begins while the same launch before it ends overwrites what that one wrote: O, LSE,
// partial results, counters. It may only do so when it has waited.
TEST(DependentLaunch, FollowsItselfWithoutARace) {
  const KernelInfo& kernel = *find_kernel("decode_mma", Executor::simt);
  for (const std::string_view shape : {"b2 h4/2 q1 k200 d64 fp16", "b2 h4/2 q1 k10 d64 fp16"}) {
    Case c{.kernel = "decode_mma", .problem = problem_from_string(shape)};
    for (const Plan& plan : kernel.plans(c.problem)) {
      if (plan.dependent_launch != DependentLaunch::yes) continue;
      c.plan = plan;
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        simt::SimtDevice device;
        device.seed_schedule(seed);
        Session session(kernel, c, make_inputs(c.problem, c.inputs), device);
        session.launch();
        session.launch();
        (void)session.read_outputs();
        EXPECT_EQ(text_of(device.take_findings()), "") << to_string(plan);
      }
    }
  }
}

}  // namespace
}  // namespace attest
