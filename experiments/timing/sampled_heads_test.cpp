#include "experiments/timing/sampled_heads.hpp"

#include <gtest/gtest.h>

#include "core/operations/quantise_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

TEST(SampledHeads, OfARightQuantiserAreRightAndACodeOrScaleThatIsOffIsFound) {
  const KernelInfo& right = *find_kernel("quantise_rows", Executor::cpu);
  KernelInfo wrong_code = right, wrong_scale = right;
  HostMemoryDevice device;
  for (const char* const kind : {"none", "head", "block", "row", "column"}) {
    const Problem problem = problem_from_string(
        std::string("quantise b2 h3 n133 d17 bf16 lengths5 kcode_e5m2 kscales_") + kind);
    wrong_code.launch = [&](const Arguments& all, Device& there) {
      right.launch(all, there);
      const QuantiseArguments a(all);
      // The last code of the batch's last head that has rows.
      const std::int64_t row = a.first_row(1) + a.rows_of(1) - 1;
      a.codes[a.code_strides.offset(0, 2, row) + 16] ^= 1U;
    };
    wrong_scale.launch = [&](const Arguments& all, Device& there) {
      right.launch(all, there);
      const QuantiseArguments a(all);
      if (a.scales != nullptr) a.scales_of(0, 0)[0] *= 2;
    };
    ASSERT_GT(problem.key_len_of(0), 0);
    ASSERT_GT(problem.key_len_of(1), 0);
    ResidentProblem resident(problem, {}, device);
    EXPECT_EQ(launch_and_sample(resident, right, {}).why_wrong(), std::nullopt) << kind;
    const auto code = launch_and_sample(resident, wrong_code, {}).why_wrong();
    EXPECT_TRUE(code && code->starts_with("codes at [1, 2, ")) << kind << code.value_or("");
    if (problem.codes.k_scales == Scales::none) continue;
    const auto scale = launch_and_sample(resident, wrong_scale, {}).why_wrong();
    EXPECT_TRUE(scale && scale->starts_with("scales at [0, 0, 0, 0]")) << kind;
  }
}

}  // namespace
}  // namespace attest
