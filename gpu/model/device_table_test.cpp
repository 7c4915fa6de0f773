#include "gpu/model/device_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/run/card.hpp"

namespace attest {
namespace {

TEST(DeviceTable, EveryDeviceIsFoundByItsNameAndSaysWhereItsNumbersAreFrom) {
  std::set<std::string_view> names, driver_names;
  for (const GpuModel& gpu : all_gpu_models()) {
    EXPECT_EQ(&gpu_model_from_name(gpu.name), &gpu);
    EXPECT_FALSE(gpu.source.empty());
    names.insert(gpu.name);
    driver_names.insert(gpu.driver_name);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"a100", "a6000", "h100", "h200", "t4"}));
  EXPECT_EQ(driver_names.size(), names.size());
}

// Default Plans of a device that is not here are asked for by its driver's name.
TEST(DeviceTable, EveryDeviceIsAKnownCardWithTheSameFacts) {
  for (const GpuModel& gpu : all_gpu_models()) {
    const Card card = card_in(gpu.driver_name);
    EXPECT_EQ(card.compute_capability, gpu.compute_capability) << gpu.name;
    EXPECT_EQ(card.sms, gpu.sms) << gpu.name;
    EXPECT_DOUBLE_EQ(card.terabytes_per_s * 1e12, gpu.dram_bytes_per_s) << gpu.name;
  }
}

TEST(DeviceTable, AnUnknownDeviceIsRefusedWithTheAllowedOnes) {
  try {
    (void)gpu_model_from_name("b200");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "device 'b200' is unknown; allowed: h200, h100, a100, a6000, t4");
  }
}

// A multiply-add is two operations a lane and clock; Ampere's GA10x and Hopper have 128 lanes an
// SM, A100 and T4 have 64. Data sheets give tenths of a TFLOP/s.
TEST(DeviceTable, ThePeakOfFp32FollowsFromCoresAndClock) {
  for (const GpuModel& gpu : all_gpu_models()) {
    const double lanes = gpu.compute_capability == 80 || gpu.compute_capability == 75 ? 64 : 128;
    const double peak = 2 * lanes * static_cast<double>(gpu.sms) * gpu.boost_hz;
    EXPECT_EQ(std::lround(peak / 1e11), std::lround(gpu.fp32_flops / 1e11)) << gpu.name;
  }
}

TEST(DeviceTable, ABlockAndItsReserveFitAnSm) {
  for (const GpuModel& gpu : all_gpu_models()) {
    EXPECT_EQ(gpu.shared_per_block_bytes + gpu.shared_reserved_bytes, gpu.shared_per_sm_bytes);
  }
}

// Q2.7: the SRAM of all SMs together is 29.4 MiB on the H200, and a block sees 227 KiB of it.
TEST(DeviceTable, SharedMemoryOfAllSmsIsNotWhatABlockSees) {
  const GpuModel& gpu = gpu_model_from_name("h200");
  EXPECT_EQ(std::lround(static_cast<double>(gpu.sms * gpu.shared_per_sm_bytes) / 0x1p20 * 10), 294);
  EXPECT_EQ(gpu.shared_per_block_bytes, 227 * 1024);
}

// Q3.23 and Q1.10: 108 SMs of 128 bytes a clock give 19.5 TB/s; the ridge of fp16 is 153.
TEST(DeviceTable, TheA100HasTheRatesThatTheDocumentsQuote) {
  const GpuModel& gpu = gpu_model_from_name("a100");
  const double shared = static_cast<double>(gpu.sms) * gpu.shared_bytes_per_clock_sm * gpu.boost_hz;
  EXPECT_EQ(std::lround(shared / 1e11), 195);
  EXPECT_EQ(std::lround(gpu.fp16_flops / gpu.dram_bytes_per_s), 153);
}

// Q0.12: 40 MB of L2 is the A100's, 50 the H100's; an H200 answers 60 when asked.
TEST(DeviceTable, EachGenerationHasItsOwnL2) {
  const auto mib = [](std::string_view name) { return gpu_model_from_name(name).l2_bytes >> 20; };
  EXPECT_EQ(mib("a6000"), 6);
  EXPECT_EQ(mib("a100"), 40);
  EXPECT_EQ(mib("h100"), 50);
  EXPECT_EQ(mib("h200"), 60);
}

TEST(DeviceTable, TheH200TakesTheExponentialsThatItsClockAllows) {
  EXPECT_EQ(std::lround(gpu_model_from_name("h200").ex2_per_s() / 1e10), 418);
}

}  // namespace
}  // namespace attest
