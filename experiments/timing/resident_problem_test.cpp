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
  for (const char* const more :
       {"", "scales_ue8m0", "kcode_int4", "vcode_e2m1", "kcode_e2m1 vcode_int4 dv7",
        "kcode_int4 vscales_column lengths4"}) {
    ResidentProblem problem(codes_of(more), {}, device);
    EXPECT_EQ(launch_and_sample(problem, kernel, {}).why_wrong(), std::nullopt) << more;
  }
  for (const char* const more :
       {"padding7", "qcode_e4m3 qscales_row", "window_bottom_right left4", "kcode_int4 padding7"}) {
    EXPECT_THROW(ResidentProblem(codes_of(more), {}, device), InvalidInput) << more;
  }
}

// Two codes a byte, each row from a byte of its own on: rows of an odd number of columns too.
TEST(ResidentProblem, CodesOfFourBitsLieWhereKernelsReadAndWriteThem) {
  HostMemoryDevice device;
  const KernelInfo& attends = *find_kernel("quantised_rows", Executor::cpu);
  const KernelInfo& quantises = *find_kernel("quantise_rows", Executor::cpu);
  for (const char* const family : {"normal", "outliers"}) {
    for (const char* const sizes : {"n40 d16 ", "n40 d15 dv9 "}) {
      const InputSpec spec{.family = family, .seed = 5};
      const auto of = [&](const char* rest) {
        return problem_from_string(std::string("b2 h4/2 fp32 ") + sizes + rest);
      };
      ResidentProblem codes(of("quantised kcode_int4 vcode_e2m1"), spec, device);
      EXPECT_EQ(launch_and_sample(codes, attends, {}).why_wrong(), std::nullopt) << sizes << family;
      for (const char* const code : {"quantise kcode_int4", "quantise kcode_e2m1"}) {
        ResidentProblem numbers(of(code), spec, device);
        EXPECT_EQ(launch_and_sample(numbers, quantises, {}).why_wrong(), std::nullopt)
            << sizes << family << code;
      }
    }
  }
}

TEST(ResidentProblem, CodesOfFourBitsLieInPagesToo) {
  HostMemoryDevice device;
  const KernelInfo& kernel = *find_kernel("quantised_rows", Executor::cpu);
  ResidentProblem problem(codes_of("kcode_int4 vcode_e2m1"), {}, device, {.page_size = 16});
  EXPECT_EQ(launch_and_sample(problem, kernel, {}).why_wrong(), std::nullopt);
}

}  // namespace
}  // namespace attest
