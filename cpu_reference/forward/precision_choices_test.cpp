#include "cpu_reference/forward/precision_choices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/same_bits.hpp"

namespace attest {
namespace {

TEST(PrecisionChoices, each_differs_from_flash_and_flash_is_the_registered_emulation) {
  const Problem p{.query_heads = 2,
                  .kv_heads = 2,
                  .query_len = 129,
                  .key_len = 257,
                  .head_dim = 64,
                  .element_type = ElementType::fp16};
  const Inputs in = make_inputs(p, {.family = "normal", .seed = 5});
  const Plan plan{.key_tile = 16, .key_splits = 2};
  const auto outputs = [&](const KernelInfo& kernel) {
    return emulate(p, plan, kernel.precision(p, plan).as<PrecisionPlan>(), in);
  };
  const Outputs flash = outputs(precision_choices().front());
  const Outputs registered = outputs(*find_kernel("emulated_mma_sm90", Executor::cpu));
  EXPECT_TRUE(same_bits(flash[forward::o].values(), registered[forward::o].values()));
  EXPECT_TRUE(same_bits(flash[forward::lse].values(), registered[forward::lse].values()));
  for (const KernelInfo& kernel : precision_choices()) {
    if (kernel.name == "choice/flash") continue;
    const Outputs other = outputs(kernel);
    EXPECT_FALSE(same_bits(other[forward::o].values(), flash[forward::o].values()) &&
                 same_bits(other[forward::lse].values(), flash[forward::lse].values()))
        << kernel.name;
  }
}

}  // namespace
}  // namespace attest
