#include "gpu/runtime/device_info.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

TEST(DeviceInfoTest, ReasonForNoGpuIsOneSentenceAndNothingElseIsPrinted) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const std::string reason = why_no_gpu();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
}

TEST(DeviceInfoTest, ReasonAgreesWithWhatTheRuntimeCanDo) {
  int count = 0;
  const bool has_device = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  EXPECT_TRUE(has_device || !why_no_gpu().empty());
  // Asked of the dynamic linker, as the runtime does.
  if (void* const driver = dlopen("libcuda.so.1", RTLD_LAZY)) {
    dlclose(driver);
    EXPECT_EQ(why_no_gpu().find("no NVIDIA driver"), std::string::npos) << why_no_gpu();
  } else {
    EXPECT_EQ(why_no_gpu(), "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
  }
}

TEST(DeviceInfoTest, RegistryGivesTheSameReasonAndRefusesToMakeADevice) {
  EXPECT_EQ(why_unavailable(Executor::gpu), why_no_gpu());
  if (!why_no_gpu().empty()) {
    EXPECT_THROW((void)make_device(Executor::gpu), MachineError);
  }
}

TEST(DeviceInfoTest, KernelsRunWhereTheyWereBuiltFor) {
  for (const bool all_gpus : {false, true}) EXPECT_EQ(why_not_on(9, 0, all_gpus), "");
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {10, 0}, {12, 0}}) {
    EXPECT_EQ(why_not_on(major, minor, true), "");
    EXPECT_NE(why_not_on(major, minor, false).find("configure with -DATTEST_ALL_GPUS=on"),
              std::string::npos);
  }
  EXPECT_EQ(why_not_on(7, 5, true), "GPU 0 is sm_75; kernels are for sm_80 and later");
}

TEST(DeviceInfoTest, UnknownDeviceThrows) {
  EXPECT_THROW((void)device_info(-1), MachineError);
}

TEST(DeviceInfoTest, TextNamesModelSizePlaceAndVersions) {
  DeviceInfo info{.name = "NVIDIA H200",
                  .compute_major = 9,
                  .multiprocessors = 132,
                  .memory_bytes = std::int64_t{141} << 30,
                  .pci_bus_id = "0000:1b:00.0",
                  .driver = "13.1",
                  .runtime = "13.0"};
  EXPECT_EQ(to_string(info),
            "NVIDIA H200, sm_90, 132 SMs, 141.0 GiB, PCI 0000:1b:00.0, driver CUDA 13.1, runtime "
            "CUDA 13.0");
  info.memory_bytes_per_s = 4.917e12;
  EXPECT_NE(to_string(info).find(", 141.0 GiB, 4.9 TB/s, PCI "), std::string::npos);
}

using GpuDeviceInfoTest = OnGpu;

TEST_F(GpuDeviceInfoTest, SizesAreThoseOfARealDevice) {
  const DeviceInfo info = device_info(0);
  EXPECT_EQ(why_no_gpu(), "");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "asking must leave no error behind";
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.compute_major, 8);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_GT(info.memory_bytes, info.l2_bytes);
  EXPECT_GT(info.memory_bytes_per_s, 0);
  EXPECT_GT(info.l2_bytes, info.shared_per_multiprocessor_bytes);
  EXPECT_GE(info.shared_per_multiprocessor_bytes, info.shared_per_block_optin_bytes);
  EXPECT_GT(info.shared_per_block_optin_bytes, info.shared_per_block_bytes);
  EXPECT_EQ(info.max_threads_per_block, 1024);
  EXPECT_EQ(info.max_grid_x, (std::int64_t{1} << 31) - 1);
}

}  // namespace
}  // namespace attest
