#include "gpu/model/occupancy.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attest {
namespace {

const GpuModel& a6000 = gpu_model_from_name("a6000");
const GpuModel& h200 = gpu_model_from_name("h200");

/// Tenths of a percent.
long permille(const Occupancy& o) {
  return std::lround(o.share * 1000);
}

std::int64_t floats(std::int64_t count) {
  return count * 4;
}

// Q3.15: 32 of 48 warps; a second block of 32 does not fit.
TEST(Occupancy, ABlockOf1024ThreadsFillsTwoThirdsOfAnA6000) {
  const Occupancy o = occupancy_of(a6000, {.threads = 1024, .shared_bytes = floats(7232)}, 12288);
  EXPECT_EQ(o.blocks, 1);
  EXPECT_EQ(permille(o), 667);
  EXPECT_EQ(o.limiters, std::vector{Limiter::warps});
}

// Q3.16: K4 and K5, 7,232 floats and 64 threads.
TEST(Occupancy, K5IsLimitedBySharedMemoryOnBothMachines) {
  const BlockNeeds k5{.threads = 64, .shared_bytes = floats(2048 + 2080 + 2048 + 1056)};
  EXPECT_EQ(k5.shared_bytes, 28928);
  const Occupancy then = occupancy_of(a6000, k5, 12288);
  EXPECT_EQ(then.blocks, 3);
  EXPECT_EQ(permille(then), 125);
  EXPECT_EQ(then.limiters, std::vector{Limiter::shared_memory});
  const Occupancy now = occupancy_of(h200, k5, 12288);
  EXPECT_EQ(now.blocks, 7);
  EXPECT_EQ(permille(now), 219);
  EXPECT_EQ(now.limiters, std::vector{Limiter::shared_memory});
}

// Q3.17: K6, two slices of 32 columns; one buffer for both would give a fifth block.
TEST(Occupancy, SlicesOfTheHeadDimMakeRoomForAFourthBlock) {
  const std::int64_t k6 = floats(2048 + 32 * 33 + 32 * 32 + 32 * 33);
  EXPECT_EQ(k6, 20736);
  const Occupancy then = occupancy_of(a6000, {.threads = 64, .shared_bytes = k6}, 12288);
  EXPECT_EQ(then.blocks, 4);
  EXPECT_EQ(permille(then), 167);
  const Occupancy now = occupancy_of(h200, {.threads = 64, .shared_bytes = k6}, 12288);
  EXPECT_EQ(now.blocks, 10);
  EXPECT_EQ(permille(now), 313);
  const std::int64_t shared_slices = floats(4160);
  EXPECT_EQ(shared_slices + 1024, 17664);
  EXPECT_EQ(occupancy_of(a6000, {.threads = 64, .shared_bytes = shared_slices}, 12288).blocks, 5);
}

// Q3.18: 48 KiB is what a block gets without asking, not the hardware's limit.
TEST(Occupancy, ABlockMayHave99KiBOnAnA6000And227OnAnH200) {
  EXPECT_EQ(occupancy_of(a6000, {.shared_bytes = 99 * 1024}, 1).blocks, 1);
  EXPECT_EQ(occupancy_of(a6000, {.shared_bytes = 99 * 1024 + 1}, 1).blocks, 0);
  EXPECT_EQ(occupancy_of(h200, {.shared_bytes = 227 * 1024}, 1).blocks, 1);
  EXPECT_EQ(occupancy_of(h200, {.shared_bytes = 227 * 1024 + 1}, 1).blocks, 0);
}

// A1: K1 could have 7 blocks an SM, but 96 blocks leave 36 SMs idle; K2 has half of the others.
TEST(Occupancy, ABlockAHeadLeavesSmsIdle) {
  const Occupancy k1 = occupancy_of(h200, {.threads = 32, .shared_bytes = 28672}, 96);
  EXPECT_EQ(k1.blocks, 7);
  EXPECT_EQ(k1.idle_sms, 36);
  EXPECT_EQ(k1.resident_blocks, 96);
  EXPECT_EQ(occupancy_of(h200, {.threads = 1024, .shared_bytes = 37120}, 96).resident_blocks, 96);
}

// ncu reads 1.6 % for K1: an SM of 64 warps has one block of a warp, though it has room for 7.
TEST(Occupancy, ASmallGridFillsNoSmBeyondItsEvenPartOfTheBlocks) {
  const BlockNeeds k1{.threads = 32, .shared_bytes = 28672};
  const auto of_grid = [&](std::int64_t grid) {
    return occupancy_of(h200, k1, grid).share_of_grid;
  };
  const double of_block = 1.0 / static_cast<double>(h200.warps_per_sm);
  EXPECT_EQ(of_grid(0), 0);
  for (const std::int64_t grid : {std::int64_t{1}, std::int64_t{96}, h200.sms}) {
    EXPECT_EQ(of_grid(grid), of_block) << grid;
  }
  EXPECT_EQ(of_grid(h200.sms + 1), 2 * of_block);
  EXPECT_EQ(of_grid(7 * h200.sms), 7 * of_block);
  const Occupancy full = occupancy_of(h200, k1, 1 << 20);
  EXPECT_EQ(full.share_of_grid, full.share);
}

// A1: K3 fills the H200 with 32 registers a thread, and half of it with 33.
TEST(Occupancy, OneRegisterMoreThanAnEvenShareCostsABlock) {
  const auto with = [](std::int64_t registers) {
    return occupancy_of(
        h200, {.threads = 1024, .registers_per_thread = registers, .shared_bytes = 28928}, 12288);
  };
  EXPECT_EQ(permille(with(32)), 1000);
  EXPECT_EQ(with(32).limiters, (std::vector{Limiter::warps, Limiter::registers}));
  EXPECT_EQ(permille(with(33)), 500);
  EXPECT_EQ(with(33).limiters, std::vector{Limiter::registers});
  EXPECT_EQ(with(64).blocks, 1);
  EXPECT_EQ(with(65).blocks, 0);
}

// Q0.11: 128 x 128 x 128 in fp16 needs 160 KiB with two stages, one block; the document's 224 KiB
// would fit, but S and O are in registers.
TEST(Occupancy, TheTileOfTheTritonPostFitsOnceAnSm) {
  EXPECT_EQ(occupancy_of(h200, {.threads = 256, .shared_bytes = 160 * 1024}, 16384).blocks, 1);
  EXPECT_EQ((32 + 32 + 32 + 64 + 64) * 1024, 224 * 1024);
}

TEST(Occupancy, OneSmallBlockIsLimitedByTheNumberOfBlocks) {
  const Occupancy o = occupancy_of(h200, {.threads = 32, .registers_per_thread = 16}, 1 << 20);
  EXPECT_EQ(o.blocks, 32);
  EXPECT_EQ(o.limiters, std::vector{Limiter::blocks});
  EXPECT_EQ(o.resident_blocks, 32 * 132);
}

}  // namespace
}  // namespace attest
