#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/inputs/random.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

std::vector<int> drawn_words(std::size_t count, std::uint64_t seed) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<int>(random_below(seed, 0, i, 40));
  return values;
}

/// View that a lane should have, by loops over the lanes of a full warp.
WarpView expected(const int* warp, int lane) {
  const auto at = [&](int l) { return warp[l]; };
  WarpView v{};
  v.from_lane = at((lane * 7 + 3) % 32);
  v.down = at(lane + 5 < 32 ? lane + 5 : lane);
  v.up = at(lane >= 5 ? lane - 5 : lane);
  v.across = at(lane ^ 9);
  v.in_groups = at(lane / 8 * 8 + 2);
  v.all = 1;
  v.smallest = *std::min_element(warp, warp + 32);
  v.largest = *std::max_element(warp, warp + 32);
  v.sum = std::accumulate(warp, warp + 32, 0);
  v.float_sum = static_cast<float>(v.sum);
  v.wide = static_cast<long long>(at(lane ^ 1)) << 40;
  for (int l = 0; l < 32; ++l) {
    v.ballot |= unsigned{at(l) % 3 == 0} << l;
    v.same |= unsigned{at(l) % 4 == at(lane) % 4} << l;
    v.any |= unsigned{at(l) == 0};
    v.bits_or |= static_cast<unsigned>(at(l));
    v.bits_xor ^= static_cast<unsigned>(at(l));
  }
  return v;
}

bool same(const WarpView& a, const WarpView& b) {
  return a.from_lane == b.from_lane && a.down == b.down && a.up == b.up && a.across == b.across &&
         a.in_groups == b.in_groups && a.ballot == b.ballot && a.any == b.any && a.all == b.all &&
         a.same == b.same && a.sum == b.sum && a.smallest == b.smallest && a.largest == b.largest &&
         a.bits_or == b.bits_or && a.bits_xor == b.bits_xor && a.float_sum == b.float_sum &&
         a.wide == b.wide;
}

TEST(WarpOperations, giveWhatLoopsOverTheLanesGive) {
  simt::SimtDevice device;
  for (const int threads : {32, 96, 1024}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto count = static_cast<std::size_t>(2 * threads);
      const std::vector<int> values = drawn_words(count, seed);
      const TestBuffer<int> in(device, "values", values);
      const TestBuffer<WarpView> out(device, "views", std::vector<WarpView>(count));
      device.seed_schedule(seed);
      launch_look(device, in.data(), out.data(), 2, threads);
      const std::vector<WarpView> got = out.read();
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(got[i], expected(&values[i / 32 * 32], static_cast<int>(i % 32))))
            << "thread " << i << " of " << threads << ", seed " << seed;
      ASSERT_TRUE(device.take_findings().empty());
    }
  }
}

TEST(WarpOperations, disjointGroupsOfAWarpDoNotDisturbEachOther) {
  simt::SimtDevice device;
  for (int split = 1; split < 32; ++split) {
    std::vector<int> values(64);
    std::iota(values.begin(), values.end(), 0);
    const TestBuffer<int> buffer(device, "values", values);
    device.seed_schedule(static_cast<std::uint64_t>(split));
    launch_split_warp(device, buffer.data(), 64, split, 7);
    const std::vector<int> got = buffer.read();
    for (int i = 0; i < 64; ++i) {
      const int lane = i % 32, others = 32 - split;
      const int want = lane < split ? (lane + 7) % split : split + (lane - split + 14) % others;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], i / 32 * 32 + want) << "split " << split;
    }
    ASSERT_TRUE(device.take_findings().empty());
  }
}

TEST(WarpOperations, areNotHeldUpByLanesThatDoNotExistOrHaveExited) {
  simt::SimtDevice device;
  const std::vector<int> values = drawn_words(37, 1);
  const TestBuffer<int> in(device, "values", values);
  const TestBuffer<WarpView> out(device, "views", std::vector<WarpView>(37));
  launch_look(device, in.data(), out.data(), 1, 37);
  EXPECT_TRUE(device.take_findings().empty());
  EXPECT_EQ(out.read()[36].sum, std::accumulate(values.begin() + 32, values.end(), 0));
}

TEST(WarpOperations, orderMemoryHoweverOftenTheyAreCalled) {
  simt::SimtDevice device;
  for (const int rounds : {1, 31, 32, 33, 200}) {  // a stamp counts 63 of them
    const TestBuffer<int> out(device, "values", std::vector<int>(66));
    device.seed_schedule(static_cast<std::uint64_t>(rounds));
    launch_warp_rounds(device, out.data(), rounds, 66);
    const std::vector<int> got = out.read();
    for (int t = 0; t < 66; ++t)
      ASSERT_EQ(got[static_cast<std::size_t>(t)], rounds * (rounds - 1) / 2 + rounds * (t ^ 1));
    const std::vector<Finding> findings = device.take_findings();
    ASSERT_TRUE(findings.empty()) << findings.front().message;
  }
}

TEST(WarpOperations, goOnWithTheLanesThatRemain) {
  simt::SimtDevice device;
  for (int stay = 1; stay <= 32; ++stay) {
    const TestBuffer<unsigned> out(device, "votes", std::vector<unsigned>(3 * 64));
    device.seed_schedule(static_cast<std::uint64_t>(stay));
    launch_vote_of_the_rest(device, out.data(), stay, 3);
    const std::vector<unsigned> votes = out.read();
    for (std::size_t i = 0; i < votes.size(); ++i) {
      const bool stays = static_cast<int>(i % 32) < stay;
      ASSERT_EQ(votes[i], stays ? 0xffffffffU >> (32 - stay) : 0U)
          << "lane " << i << " of " << stay;
    }
    ASSERT_TRUE(device.take_findings().empty());
  }
}

TEST(Atomics, giveWhatALoopGivesOnAnyNumberOfOsThreads) {
  for (const int os_threads : {1, 2, 4}) {
    simt::SimtDevice device(os_threads);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<int> values = drawn_words(7 * 97, seed);
      const TestBuffer<int> in(device, "values", values);
      const TestBuffer<int> out(device, "sums", {0, -1, 1000, 0, 0});
      device.seed_schedule(seed);
      launch_atomics(device, in.data(), out.data(), 7, 97);
      const std::vector<int> want = {std::accumulate(values.begin(), values.end(), 0),
                                     *std::max_element(values.begin(), values.end()),
                                     *std::min_element(values.begin(), values.end()), 7 * 97,
                                     7 * 97 % 10};
      ASSERT_EQ(out.read(), want);
      ASSERT_TRUE(device.take_findings().empty());
    }
  }
}

TEST(Indices, countXFastestInBlocksAndGrids) {
  simt::SimtDevice device;
  const std::size_t count = 24 * 70;
  const TestBuffer<int> threads(device, "threads", std::vector<int>(count));
  const TestBuffer<int> blocks(device, "blocks", std::vector<int>(count));
  launch_indices(device, threads.data(), blocks.data());
  const std::vector<int> got_threads = threads.read(), got_blocks = blocks.read();
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const int t = i % 70, b = i / 70;
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(got_threads[at], t % 5 + 1000 * (t / 5 % 2) + 1000000 * (t / 10));
    ASSERT_EQ(got_blocks[at], b % 3 + 1000 * (b / 3 % 4) + 1000000 * (b / 12));
  }
}

}  // namespace
}  // namespace attest
