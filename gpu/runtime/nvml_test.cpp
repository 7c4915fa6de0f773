#include "gpu/runtime/nvml.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
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

/// The states of the two GPUs of fake_nvml.c. For a process of its own: the library is opened once.
std::array<std::optional<DeviceState>, 2> fake_states() {
  setenv("ATTEST_NVML", ATTEST_FAKE_NVML, 1);
  return {nvml_state("0000:1B:00.0"), nvml_state("0000:43:00.0")};
}

#define EXPECT_IN_A_PROCESS(is_right) \
  EXPECT_EXIT(std::exit((is_right) ? 0 : 1), ::testing::ExitedWithCode(0), "")

TEST(NvmlDeathTest, of_several_gpus_the_state_is_that_of_the_one_with_the_bus_id) {
  const auto is_right = [] {
    const auto [first, second] = fake_states();
    return first && second && first->sm_clock_mhz == 1000 && first->power_w == 100 &&
           second->sm_clock_mhz == 1980 && second->memory_clock_mhz == 3201 &&
           second->power_w == 700;
  };
  EXPECT_IN_A_PROCESS(is_right());
}

TEST(NvmlDeathTest, only_the_gpu_at_its_power_cap_is_throttled) {
  const auto is_right = [] {
    const auto [idle, capped] = fake_states();
    return idle && capped && idle->throttle_reasons == Words{} &&
           capped->throttle_reasons == Words{"power cap"};
  };
  EXPECT_IN_A_PROCESS(is_right());
}

TEST(NvmlDeathTest, a_throttle_that_ended_before_it_was_asked_about_shows_in_the_counters) {
  const auto is_right = [] {
    const auto [state, other] = fake_states();
    auto before = nvml_throttled_ms("0000:1B:00.0"), after = nvml_throttled_ms("0000:1B:00.0");
    return state->throttle_reasons == Words{} && before.at("power cap") >= 5000 &&
           after.at("power cap") - before.at("power cap") == 3 && after.at("heat") == 0;
  };
  EXPECT_IN_A_PROCESS(is_right());
}

TEST(NvmlDeathTest, what_a_gpu_does_not_count_is_missing_and_not_zero) {
  const auto is_right = [] {
    const auto [counts_two, counts_nothing] = fake_states();
    return counts_two && counts_nothing && nvml_throttled_ms("0000:1B:00.0").size() == 2 &&
           nvml_throttled_ms("0000:43:00.0").empty() && nvml_throttled_ms("0000:44:00.0").empty();
  };
  EXPECT_IN_A_PROCESS(is_right());
}

TEST(NvmlDeathTest, a_driver_that_tells_neither_reasons_nor_counters_does_not_say_unthrottled) {
  const auto is_right = [] {
    setenv("ATTEST_NVML", ATTEST_FAKE_OLD_NVML, 1);
    const auto state = nvml_state("0000:43:00.0");
    return state && state->power_w == 700 && !state->throttle_reasons &&
           nvml_throttled_ms("0000:43:00.0").empty();
  };
  EXPECT_IN_A_PROCESS(is_right());
}

TEST(NvmlDeathTest, what_a_gpu_does_not_tell_is_no_number_and_who_is_not_there_has_no_state) {
  const auto is_right = [] {
    const auto [first, quiet] = fake_states();
    return quiet && std::isnan(quiet->temperature_c) && !nvml_state("0000:44:00.0");
  };
  EXPECT_IN_A_PROCESS(is_right());
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

TEST_F(GpuNvmlTest, what_its_driver_counts_never_falls) {
  if (!why_no_nvml().empty()) GTEST_SKIP() << why_no_nvml();
  CudaDevice device;
  const auto before = device.throttled_ms(), after = device.throttled_ms();
  if (before.empty()) GTEST_SKIP() << "this driver counts nothing";
  for (const auto& [reason, ms] : before) {
    EXPECT_GE(ms, 0) << reason;
    EXPECT_GE(after.at(reason), ms) << reason;
  }
}

TEST_F(GpuNvmlTest, a_gpu_that_is_not_there_has_no_state) {
  EXPECT_FALSE(nvml_state("ffff:ff:1f.0"));
  EXPECT_FALSE(nvml_state(""));
}

}  // namespace
}  // namespace attest
