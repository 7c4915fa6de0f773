#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/test_device.hpp"
#include "gpu/runtime/test_kernels.hpp"

namespace attest {
namespace {

class GpuLaunchTest : public OnGpu {};

// How much shared memory a kernel may ask for is one setting of the whole process: a thread that
// lowers it between another's setting and launch makes that launch fail.
TEST_F(GpuLaunchTest, ThreadsThatLaunchOneKernelWithDifferentSharedMemoryDoNotDisturbEachOther) {
  std::vector<std::string> failures(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < failures.size(); ++t) {
      threads.emplace_back([t, &failures] {
        try {
          CudaDevice device;
          for (int i = 0; i < 20000; ++i) {
            launch_touch_shared((50 + 12 * t) * 1024, device);
            if (i % 500 == 0) device.synchronize();
          }
          device.synchronize();
        } catch (const std::exception& error) {
          failures[t] = error.what();
        }
      });
    }
  }
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace attest
