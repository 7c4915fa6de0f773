#include <gtest/gtest.h>

#include <numeric>

#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

TEST(Barrier, ordersAllThreadsUnderEverySchedule) {
  for (const int threads : {1, 31, 32, 33, 97, 1024}) {
    simt::SimtDevice device(threads % 2 + 1);
    for (std::uint64_t seed = 0; seed < (threads < 100 ? 100U : 4U); ++seed) {
      device.seed_schedule(seed);
      std::vector<int> values(static_cast<std::size_t>(3 * threads));
      std::iota(values.begin(), values.end(), 0);
      const TestBuffer<int> buffer(device, "values", values);
      launch_rotate(device, buffer.data(), 3, threads, 5);
      const std::vector<int> got = buffer.read();
      for (int b = 0; b < 3; ++b)
        for (int t = 0; t < threads; ++t)
          ASSERT_EQ(got[static_cast<std::size_t>(b * threads + t)], b * threads + (t + 5) % threads)
              << threads << " threads, seed " << seed;
      ASSERT_TRUE(device.take_findings().empty());
    }
  }
}

}  // namespace
}  // namespace attest
