#include "gpu/runtime/nvml.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using Words = std::vector<std::string>;

TEST(ThrottleReasons, an_idle_gpu_and_chosen_clocks_are_not_throttled) {
  EXPECT_EQ(throttle_reasons(0), Words{});
  EXPECT_EQ(throttle_reasons(0x1 | 0x2 | 0x100), Words{});
}

TEST(ThrottleReasons, every_other_bit_has_words_and_unknown_ones_are_not_lost) {
  EXPECT_EQ(throttle_reasons(0x4 | 0x40), (Words{"power cap", "heat, hardware"}));
  EXPECT_EQ(throttle_reasons(0x1 | 0x200), Words{"unknown reason 0x200"});
  for (std::uint64_t bit = 4; bit != 0; bit *= 2) {
    EXPECT_EQ(throttle_reasons(bit).size(), bit == 0x100 ? 0U : 1U) << bit;
  }
}

TEST(NvmlDeathTest, a_missing_library_gives_no_state_and_a_reason) {
  EXPECT_EXIT(
      {
        setenv("ATTEST_NVML", "/nowhere/libnvidia-ml.so.1", 1);
        if (!nvml_state("0000:00:00.0")) std::fputs(why_no_nvml().c_str(), stderr);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "set ATTEST_NVML");
}

using GpuNvmlTest = OnGpu;

TEST_F(GpuNvmlTest, the_state_of_the_device_is_that_of_a_running_gpu) {
  if (!why_no_nvml().empty()) GTEST_SKIP() << why_no_nvml();
  CudaDevice device;
  const auto state = device.state();
  ASSERT_TRUE(state) << device.info().pci_bus_id;
  EXPECT_GT(state->sm_clock_mhz, 0);
  EXPECT_GT(state->memory_clock_mhz, 0);
  EXPECT_GT(state->power_w, 0);
  EXPECT_GT(state->temperature_c, 0);
}

TEST_F(GpuNvmlTest, a_gpu_that_is_not_there_has_no_state) {
  EXPECT_FALSE(nvml_state("ffff:ff:1f.0"));
  EXPECT_FALSE(nvml_state(""));
}

}  // namespace
}  // namespace attest
