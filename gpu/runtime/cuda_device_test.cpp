#include "gpu/runtime/cuda_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gpu/runtime/launch.hpp"
#include "gpu/runtime/test_device.hpp"
#include "gpu/runtime/test_kernels.hpp"

namespace attest {
namespace {

static_assert(!std::is_copy_constructible_v<Stream> &&
              std::is_nothrow_move_constructible_v<Stream>);
static_assert(!std::is_copy_constructible_v<Event> && std::is_nothrow_move_constructible_v<Event>);
static_assert(!std::is_copy_constructible_v<DeviceBuffer<int>>);
static_assert(std::is_nothrow_move_constructible_v<DeviceBuffer<int>>);

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

TEST(DeviceBufferTest, EmptyBufferNeedsNoGpu) {
  DeviceBuffer<float> buffer{0};
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_NO_THROW(buffer.copy_from({}));
}

TEST(DeviceBufferTest, CopyOfAnotherSizeIsRefused) {
  DeviceBuffer<float> buffer;
  const std::vector<float> three(3);
  EXPECT_THROW(buffer.copy_from(three), InvalidInput);
}

TEST(DeviceBufferTest, SizeBeyondTheAddressSpaceIsRefusedInsteadOfWrappingRound) {
  // In 64 bits, the product with 8 bytes an element is 8.
  const std::size_t count = std::numeric_limits<std::size_t>::max() / sizeof(double) + 2;
  try {
    const DeviceBuffer<double> buffer{count};
    FAIL() << "a buffer of " << buffer.size() << " elements";
  } catch (const CudaError& error) {
    FAIL() << "reached the driver: " << error.what();
  } catch (const MachineError&) {
  }
}

using GpuDeviceTest = OnGpu;

TEST_F(GpuDeviceTest, fill_repeats_a_pattern_to_the_last_byte_and_touches_nothing_behind_it) {
  CudaDevice device;
  for (const std::size_t period : {1, 4, 7, 1000}) {
    for (const std::size_t bytes : {std::size_t{0}, period - 1, period, 3 * period + 1, 5000UL}) {
      const std::vector<std::byte> before = pattern(6000), values = pattern(period);
      std::byte* const buffer = device.upload_values(before);
      const std::uint64_t version = device.memory_version();
      device.fill(buffer + 16, bytes, values);
      EXPECT_NE(device.memory_version(), version) << "who keeps copies must copy again";
      std::vector<std::byte> want = before, got(before.size());
      for (std::size_t i = 0; i < bytes; ++i) want[16 + i] = values[i % period];
      device.download(buffer, got);
      EXPECT_EQ(got, want) << period << " " << bytes;
      device.release(buffer);
    }
  }
}

TEST_F(GpuDeviceTest, UploadedBytesComeBackFromAnAlignedAddressOfTheirOwn) {
  CudaDevice device;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{1 << 20}}) {
    const BufferImage image{.name = "x", .pieces = {{.bytes = pattern(size)}}};
    std::byte* const first = device.upload(image);
    std::byte* const second = device.upload(image);
    EXPECT_NE(first, second);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 256, 0U);
    std::vector<std::byte> back(size);
    device.download(first, back);
    EXPECT_EQ(back, image.pieces[0].bytes) << size;
    device.release(first);
    device.release(second);
  }
}

TEST_F(GpuDeviceTest, SharedMemoryThatALaunchHasNotWrittenHoldsNaNAfterPoisoning) {
  CudaDevice device;
  constexpr int words = 40 * 1024 / 4;
  const int blocks = device.info().multiprocessors;
  DeviceBuffer<unsigned> seen{static_cast<std::size_t>(blocks) * words};
  device.poison_scratch();
  launch_copy_unwritten_shared(seen.data(), blocks, words, device);
  device.synchronize();
  std::vector<unsigned> values(seen.size());
  seen.copy_to(values);
  EXPECT_EQ(std::ranges::count(values, 0xffffffffU), std::ssize(values));
}

TEST_F(GpuDeviceTest, PiecesOfABufferLieWhereTheImageSaysAndNothingIsCopiedBetweenThem) {
  CudaDevice device;
  constexpr std::size_t far = std::size_t{5} << 30;
  const BufferImage image{
      .name = "far",
      .pieces = {{.begin = 0, .bytes = pattern(100)}, {.begin = far, .bytes = pattern(300)}}};
  std::byte* const buffer = device.upload(image);
  std::vector<std::byte> back(300);
  device.download(buffer + far, back);
  EXPECT_EQ(back, image.pieces[1].bytes);
  device.release(buffer);
}

TEST_F(GpuDeviceTest, MovedBufferKeepsItsValuesAndLeavesNothingBehind) {
  const std::vector<int> values{3, 1, 4, 1, 5};
  DeviceBuffer<int> from{values.size()};
  from.copy_from(values);
  DeviceBuffer<int> to = std::move(from);
  std::vector<int> back(values.size());
  to.copy_to(back);
  EXPECT_EQ(back, values);
  EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): this is the promise
  EXPECT_EQ(from.size(), 0U);
}

// cudaMemcpy of so few bytes returns before they have arrived.
TEST_F(GpuDeviceTest, WhatABufferWasGivenIsThereForWorkInAnyStream) {
  CudaDevice device;
  DeviceBuffer<int> buffer{15 * 1024}, last{1};
  for (int i = 0; i < 3000; ++i) {
    buffer.copy_from(std::vector<int>(buffer.size(), i));
    ATTEST_CUDA_CHECK(cudaMemcpyAsync(last.data(), buffer.data() + buffer.size() - 1, sizeof(int),
                                      cudaMemcpyDeviceToDevice, device.stream().get()));
    device.synchronize();
    int got = -1;
    last.copy_to({&got, 1});
    ASSERT_EQ(got, i);
  }
}

TEST_F(GpuDeviceTest, AllocationBeyondTheMemoryThrowsOneSentenceAndTheDeviceStaysUsable) {
  CudaDevice device;
  const auto too_much = static_cast<std::size_t>(device.info().memory_bytes) * 2;
  EXPECT_THROW(DeviceBuffer<std::byte>{too_much}, MachineError);
  EXPECT_NO_THROW(DeviceBuffer<std::byte>{1});
}

TEST_F(GpuDeviceTest, TimeIsPositiveAndGrowsWithTheWork) {
  CudaDevice device;
  const std::size_t size = std::size_t{256} << 20;
  DeviceBuffer<std::byte> buffer{size};
  const auto clear = [&](int times) {
    return [&, times] {
      for (int i = 0; i < times; ++i) {
        ATTEST_CUDA_CHECK(cudaMemsetAsync(buffer.data(), i, size, device.stream().get()));
      }
    };
  };
  (void)device.time_ms(clear(1));
  const double one = device.time_ms(clear(1));
  EXPECT_GT(one, 0);
  EXPECT_GT(device.time_ms(clear(16)), one);
}

TEST_F(GpuDeviceTest, ReplayedWorkIsDoneOnceAndTakesTime) {
  CudaDevice device;
  const std::vector<std::byte> before = pattern(1000);
  std::byte* const buffer = device.upload_values(before);
  const auto double_it = [&] {  // not the same when done twice
    ATTEST_CUDA_CHECK(cudaMemcpyAsync(buffer + 500, buffer, 500, cudaMemcpyDeviceToDevice,
                                      device.stream().get()));
    ATTEST_CUDA_CHECK(
        cudaMemcpyAsync(buffer, buffer + 1, 499, cudaMemcpyDeviceToDevice, device.stream().get()));
  };
  EXPECT_GT(device.replay_ms(double_it), 0);
  std::vector<std::byte> want = before, got(before.size());
  std::copy_n(want.begin(), 500, want.begin() + 500);
  std::copy_n(want.begin() + 1, 499, want.begin());
  device.download(buffer, got);
  EXPECT_EQ(got, want);
  device.release(buffer);
}

TEST_F(GpuDeviceTest, RecordedWorkIsDoneAtEachReplayAndFindsWhatIsThereThen) {
  CudaDevice device;
  const std::vector<std::byte> before = pattern(1000);
  std::byte* const buffer = device.upload_values(before);
  const std::unique_ptr<Recording> recording = device.record([&] {
    ATTEST_CUDA_CHECK(cudaMemcpyAsync(buffer + 500, buffer, 500, cudaMemcpyDeviceToDevice,
                                      device.stream().get()));
  });
  std::vector<std::byte> got(before.size());
  device.download(buffer, got);
  EXPECT_EQ(got, before) << "nothing is done while it is recorded";
  const std::byte seven{7};
  device.fill(buffer, 500, {&seven, 1});
  recording->replay();
  device.download(buffer, got);
  EXPECT_EQ(std::ranges::count(got, seven), 1000);
  device.release(buffer);
}

TEST_F(GpuDeviceTest, WorkThatWaitsOrAllocatesCannotBeRecordedAndLeavesTheStreamUsable) {
  CudaDevice device;
  EXPECT_THROW((void)device.record([&] { device.synchronize(); }), MachineError);
  EXPECT_THROW((void)device.record([&] { device.release(device.allocate(8)); }), MachineError);
  EXPECT_GE(device.time_ms([] {}), 0);
  device.synchronize();
}

TEST_F(GpuDeviceTest, WorkThatThrowsWhileItIsRecordedLeavesTheStreamUsable) {
  CudaDevice device;
  EXPECT_THROW((void)device.replay_ms([] { throw KernelError("refused"); }), KernelError);
  EXPECT_GE(device.time_ms([] {}), 0);
  device.synchronize();
}

TEST_F(GpuDeviceTest, LaunchBeyondTheDeviceIsRefusedWithASentenceBeforeItReachesTheDriver) {
  CudaDevice device;
  const auto refusal = [&](dim3 grid, dim3 block, std::size_t shared_bytes) -> std::string {
    try {
      launch_checked(nullptr, grid, block, shared_bytes, device, nullptr);
    } catch (const CudaError&) {
      return "reached the driver";
    } catch (const MachineError& error) {
      return error.what();
    }
    return "launched";
  };
  EXPECT_NE(refusal({0}, {32}, 0).find("grid.x is 0; "), std::string::npos);
  EXPECT_NE(refusal({1, 65536}, {32}, 0).find("grid.y is 65536; "), std::string::npos);
  EXPECT_NE(refusal({1}, {1025}, 0).find("threads of a block is 1025; "), std::string::npos);
  const auto limit = static_cast<std::size_t>(device.info().shared_per_block_optin_bytes);
  EXPECT_NE(refusal({1}, {32}, limit + 1).find("shared memory"), std::string::npos);
  EXPECT_EQ(refusal({1}, {32}, 0), "reached the driver");  // a null kernel
}

TEST_F(GpuDeviceTest, TheVersionOfItsMemoryChangesWithEveryBufferAndIsNoOtherDevices) {
  CudaDevice device;
  const std::uint64_t first = device.memory_version();
  EXPECT_NE(CudaDevice().memory_version(), first);
  EXPECT_EQ(device.memory_version(), first);
  std::byte* const buffer = device.allocate(16);
  const std::uint64_t second = device.memory_version();
  EXPECT_NE(second, first);
  device.flush_cache();
  EXPECT_EQ(device.memory_version(), second) << "a flush touches nobody's buffer";
  device.release(buffer);
  EXPECT_NE(device.memory_version(), second);
  EXPECT_NE(device.memory_version(), first);
}

}  // namespace
}  // namespace attest
