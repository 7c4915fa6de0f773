#include "experiments/timing/resident_problem.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/base/error.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "experiments/timing/sampled_rows.hpp"

namespace attest {
namespace {

Problem codes_of(const std::string& more) {
  return problem_from_string("b2 h4/2 q3 k70 d16 fp32 quantised kscales_row " + more);
}

// A sampled row is a problem of its own, with the scales of the first keys.
TEST(ResidentProblem, RowsOfCodesAreComparedWhereTheySeeTheFirstKeysAndNoOthers) {
  HostMemoryDevice device;
  const KernelInfo& kernel = *find_kernel("quantised_rows", Executor::cpu);
  for (const char* const more : {"", "scales_ue8m0"}) {
    ResidentProblem problem(codes_of(more), {}, device);
    EXPECT_EQ(launch_and_sample(problem, kernel, {}).why_wrong(), std::nullopt) << more;
  }
  for (const char* const more : {"padding7", "qcode_e4m3 qscales_row", "window_bottom_right left4",
                                 "kcode_int4", "vcode_e2m1"}) {
    EXPECT_THROW(ResidentProblem(codes_of(more), {}, device), InvalidInput) << more;
  }
}

}  // namespace
}  // namespace attest
