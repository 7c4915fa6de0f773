#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

/// Touches the last byte of its dynamic shared memory.
__global__ void touch_shared(std::size_t bytes) {
  dynamic_shared<char>()[bytes - 1] = static_cast<char>(threadIdx.x);
}

class GpuLaunchTest : public OnGpu {};

// How much shared memory a kernel may ask for is one setting of the whole process: a thread that
// lowered it between another's setting and launch made that launch fail, about once in 10^5.
TEST_F(GpuLaunchTest, ThreadsThatLaunchOneKernelWithDifferentSharedMemoryDoNotDisturbEachOther) {
  std::vector<std::string> failures(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < failures.size(); ++t) {
      threads.emplace_back([t, &failures] {
        try {
          CudaDevice device;
          const std::size_t bytes = (50 + 12 * t) * 1024;
          for (int i = 0; i < 20000; ++i) {
            launch(touch_shared, dim3(1), dim3(1), bytes, device, bytes);
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
