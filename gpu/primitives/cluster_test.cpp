#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "core/base/error.hpp"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using GpuCluster = OnHopper;

TEST_F(GpuCluster, BlocksReadWhatOthersLeftWhicheverIsSlow) {
  constexpr int clusters = 40, threads = 96, steps = 6;
  for (const int cluster : {1, 2, 5, 8}) {
    for (const int slow : {-1, 0, cluster - 1}) {
      // All threads of a block hold the same number, so that no order of threads matters.
      std::vector<int> wanted;
      for (int block = 0; block < clusters * cluster; ++block) wanted.push_back(block);
      for (int step = 0; step < steps; ++step) {
        const std::vector<int> before = wanted;
        for (int block = 0; block < clusters * cluster; ++block) {
          const int behind = block / cluster * cluster + (block % cluster + 1) % cluster;
          wanted[static_cast<std::size_t>(block)] += before[static_cast<std::size_t>(behind)];
        }
      }
      DeviceBuffer<int> out{static_cast<std::size_t>(clusters * cluster * threads)};
      launch_add_neighbours(clusters, cluster, threads, steps, slow, out.data(), device());
      const std::vector<int> got = read_back(out, device());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], wanted[i / threads]) << "clusters of " << cluster << ", slow: " << slow;
      }
    }
  }
}

TEST_F(GpuCluster, SizesThatNoGpuTakesAreRefusedInASentence) {
  DeviceBuffer<int> out{9};
  EXPECT_THROW(launch_add_neighbours(1, 9, 1, 1, -1, out.data(), device()), MachineError);
}

}  // namespace
}  // namespace attest
