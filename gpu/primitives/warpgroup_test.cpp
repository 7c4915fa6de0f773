#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gpu/model/compiled_kernels.hpp"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using GpuWarpgroup = OnHopper;

TEST_F(GpuWarpgroup, NamedBarriersMakeTwoGroupsTakeTurnsWhicheverIsSlow) {
  constexpr int rounds = 50;
  for (const int slow : {-1, 0, 1}) {
    DeviceBuffer<int> order{2 * rounds};
    launch_turns(rounds, slow, order.data(), device());
    const std::vector<int> got = read_back(order, device());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<int>(i % 2)) << "turn " << i << ", slow: " << slow;
    }
  }
}

TEST_F(GpuWarpgroup, ABarrierOfOneGroupWaitsForItsFourWarpsAndForNoOther) {
  const std::vector<int> none{0, 0};
  const auto wrong = on_device(none);
  launch_meetings(40, 73, wrong.data(), device());
  EXPECT_EQ(read_back(wrong, device()), none);
}

TEST_F(GpuWarpgroup, OneLaneOfAWarpIsElectedAndAlwaysTheSame) {
  DeviceBuffer<int> elected{2 * 64};
  launch_elections(elected.data(), device());
  const std::vector<int> got = read_back(elected, device());
  for (int warp = 0; warp < 2; ++warp) {
    const auto first = got.begin() + warp * 32;
    EXPECT_EQ(std::count(first, first + 32, 1), 1) << "warp " << warp;
    EXPECT_TRUE(std::equal(first, first + 32, first + 64)) << "warp " << warp;
  }
}

// Were registers not released, those who wait for more would wait for ever; were they not taken,
// 200 values would not fit: the build refuses spills.
TEST_F(GpuWarpgroup, RegistersChangeHandsAndHoldWhatDidNotFitBefore) {
  std::vector<float> in(static_cast<std::size_t>(held_values) * holding_threads);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 40503U % 1021U);
  const auto from = on_device(in);
  const DeviceBuffer<float> to{in.size()};
  launch_holding(from.data(), to.data(), device());
  const std::vector<float> got = read_back(to, device());
  for (std::size_t thread = 0; thread < holding_threads; ++thread) {
    float sum = 0;
    for (std::size_t i = 0; i < held_values; ++i) sum += in[i * holding_threads + thread];
    for (std::size_t i = 0; i < held_values; ++i) {
      const std::size_t at = i * holding_threads + thread;
      ASSERT_EQ(got[at], in[at] + sum) << "thread " << thread << ", value " << i;
    }
  }
}

TEST(Warpgroup, AThreadHoldsMoreValuesThanItsKernelStartsWithRegisters) {
  const std::vector<CompiledKernel> kernels = compiled_kernels();
  const auto holding = std::ranges::find(kernels, "holding", &CompiledKernel::name);
  ASSERT_NE(holding, kernels.end());
  EXPECT_LT(holding->registers, held_values);
  EXPECT_EQ(holding->stack_bytes, 0);
}

}  // namespace
}  // namespace attest
