#include "gpu/simt/simt_device.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

void do_nothing(const void*) {}
const simt::KernelCall empty_kernel{do_nothing, nullptr, nullptr};

TEST(SimtDevice, isWhatTheRegistryMakes) {
  EXPECT_EQ(why_unavailable(Executor::simt), "");
  EXPECT_NE(dynamic_cast<simt::SimtDevice*>(make_device(Executor::simt).get()), nullptr);
}

TEST(SimtDevice, refusesSizesThatAGpuCannotLaunch) {
  simt::SimtDevice device;
  const std::size_t limit = 227 * 1024;
  EXPECT_NO_THROW(device.run_grid(empty_kernel, {1, 1, 1}, {1024, 1, 1}, limit));
  EXPECT_NO_THROW(device.run_grid(empty_kernel, {1, 65535, 1}, {1, 1, 64}, 0));
  EXPECT_THROW(device.run_grid(empty_kernel, {1, 1, 1}, {1025, 1, 1}, 0), MachineError);
  EXPECT_THROW(device.run_grid(empty_kernel, {1, 1, 1}, {32, 33, 1}, 0), MachineError);
  EXPECT_THROW(device.run_grid(empty_kernel, {1, 1, 1}, {1, 1, 65}, 0), MachineError);
  EXPECT_THROW(device.run_grid(empty_kernel, {1, 1, 1}, {0, 1, 1}, 0), MachineError);
  EXPECT_THROW(device.run_grid(empty_kernel, {0, 1, 1}, {1, 1, 1}, 0), MachineError);
  EXPECT_THROW(device.run_grid(empty_kernel, {1, 65536, 1}, {1, 1, 1}, 0), MachineError);
  EXPECT_THROW(device.run_grid(empty_kernel, {1, 1, 1}, {1, 1, 1}, limit + 1), MachineError);
  EXPECT_THROW(simt::SimtDevice(0), InvalidInput);
}

TEST(SimtDevice, buffersKeepTheirBytesAndAreAligned) {
  simt::SimtDevice device;
  std::vector<std::byte*> addresses;
  for (int round = 0; round < 2;
       ++round) {  // the second one finds the places of the first one free
    for (const std::size_t size : {0U, 1U, 255U, 256U, 5000000U}) {
      BufferImage::Piece piece;
      for (std::size_t i = 0; i < size; ++i)
        piece.bytes.push_back(static_cast<std::byte>(i * 7 + size));
      piece.accessible = {0, size};
      std::byte* at = device.upload({.name = "b", .pieces = {piece}});
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 256, 0U);
      std::vector<std::byte> back(size);
      device.download(at, back);
      EXPECT_EQ(back, piece.bytes);
      addresses.push_back(at);
    }
    for (std::byte* at : addresses) device.release(at);
    addresses.clear();
  }
  BufferImage huge;
  EXPECT_NO_THROW(device.release(device.upload(huge)));
}

TEST(SimtDevice, memoryOfAReleasedBufferIsOutOfBounds) {
  simt::SimtDevice device;
  unsigned short* stale = nullptr;
  {
    const TestBuffer<unsigned short> gone(device, "gone", std::vector<unsigned short>(8));
    stale = gone.data();
  }
  launch_copy_half(device, stale, 0, 1);
  const std::vector<Finding> findings = device.take_findings();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, "out of bounds");
}

std::vector<int> rotate(simt::SimtDevice& device, int blocks, int threads, int rounds) {
  std::vector<int> values(static_cast<std::size_t>(blocks * threads));
  std::iota(values.begin(), values.end(), 0);
  const TestBuffer<int> buffer(device, "values", values);
  launch_rotate(device, buffer.data(), blocks, threads, rounds);
  launch_rotate(device, buffer.data(), blocks, threads, 0);  // reads what the first launch wrote
  return buffer.read();
}

TEST(SimtDevice, aBlockMayPassMoreBarriersThanAStampCounts) {
  simt::SimtDevice device;
  const int rounds = 20000;  // 40,000 barriers against 14 bits
  EXPECT_EQ(rotate(device, 2, 3, rounds),
            (std::vector<int>{rounds % 3, (rounds + 1) % 3, (rounds + 2) % 3, 3 + rounds % 3,
                              3 + (rounds + 1) % 3, 3 + (rounds + 2) % 3}));
  EXPECT_TRUE(device.take_findings().empty());
}

TEST(SimtDevice, goesOnWhenBlockSerialsAreUsedUp) {
  // Five serials a launch, two launches a call: they start anew between the launches of one call.
  simt::SimtDevice device(1, simt::serial_limit / 4 * 3 - 15);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(rotate(device, 5, 2, 3), (std::vector<int>{1, 0, 3, 2, 5, 4, 7, 6, 9, 8}));
    EXPECT_TRUE(device.take_findings().empty());
  }
}

TEST(SimtDevice, readsAcrossTheEndOfTheSerialsAreStillKnown) {
  simt::SimtDevice device(1, simt::serial_limit / 4 * 3 - 1);
  const TestBuffer<unsigned short> values(device, "values", std::vector<unsigned short>(8),
                                          TestBuffer<unsigned short>::Contents::unwritten);
  launch_halves(device, values.data(), 2, false);  // elements 0 to 3; serials start anew after it
  for (int from = 0; from < 8; ++from) {
    launch_copy_half(device, values.data(), from, from);
    EXPECT_EQ(device.take_findings().size(), from < 4 ? 0U : 1U) << from;
  }
}

}  // namespace
}  // namespace attest
