#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gpu/simt/cuda_math.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr std::uint64_t schedules = 20;  // half of the blocks do all copies at once

struct Added {
  std::vector<float> sums, found;
  std::string findings;
};

Added add_twice(BulkBug bug, std::uint64_t seed, int blocks, float first = 0) {
  simt::SimtDevice device;
  device.seed_schedule(seed);
  const TestBuffer<float> sums(device, "sums", std::vector<float>(64, first));
  const TestBuffer<float> found(device, "found",
                                std::vector<float>(static_cast<std::size_t>(blocks)));
  launch_add_twice(device, bug, blocks, sums.data(), found.data());
  return {sums.read(), found.read(), text_of(device.take_findings())};
}

TEST(AddBytes, AddsOnceAndIsSeenBehindTheWait) {
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const Added a = add_twice(BulkBug::none, seed, 3);
    EXPECT_EQ(a.sums, std::vector<float>(64, 9.0F));
    float all = 0;
    for (const float x : a.found) all += x;
    EXPECT_EQ(all, 3.0F + 6.0F + 9.0F);  // one block after the other
    EXPECT_EQ(a.findings, "");
  }
}

/// Number of schedules that show a bug in the sums, or in what a block found.
int shown(BulkBug bug) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const Added a = add_twice(bug, seed, 1);
    count += a.sums != std::vector<float>(64, 3.0F) || a.found != std::vector<float>{3.0F};
  }
  return count;
}

TEST(AddBytes, ShowsWhatWasOverwrittenNotCommittedOrNotWaitedFor) {
  EXPECT_EQ(shown(BulkBug::none), 0);
  EXPECT_GT(shown(BulkBug::overwritten), 0);
  EXPECT_GT(shown(BulkBug::not_committed), 0);
  EXPECT_GT(shown(BulkBug::waits_for_reads_alone), 0);
}

TEST(AddBytes, WaitsForAllGroupsButTheNewest) {
  for (const BulkBug bug : {BulkBug::none, BulkBug::overwritten}) {
    bool is_wrong = false;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      simt::SimtDevice device;
      device.seed_schedule(seed);
      const TestBuffer<float> sums(device, "sums", std::vector<float>(64));
      launch_add_from_two_places(device, bug, sums.data());
      is_wrong |= sums.read() != std::vector<float>(64, 3.0F);
      EXPECT_EQ(text_of(device.take_findings()), "");
    }
    EXPECT_EQ(is_wrong, bug != BulkBug::none);
  }
}

TEST(AddBytes, TakesSubnormalNumbersAsZero) {
  const Added a = add_twice(BulkBug::none, 0, 1, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(a.sums, std::vector<float>(64, 3.0F));
}

TEST(AddBytes, AddsIntegersModulo2To32AndTakesNoneForASubnormalNumber) {
  constexpr int largest = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    simt::SimtDevice device;
    device.seed_schedule(seed);
    std::vector<int> words(64, 1);
    words[1] = -1;
    words[2] = 1 << 30;
    const TestBuffer<int> terms(device, "terms", words);
    const TestBuffer<int> sums(device, "sums", std::vector<int>(64));
    launch_add_integers(device, 3, terms.data(), sums.data());
    std::vector<int> want(64, 3);
    want[1] = -3;
    want[2] = least + (1 << 30);
    EXPECT_EQ(sums.read(), want);
    EXPECT_EQ(text_of(device.take_findings()), "");
  }
  EXPECT_EQ(__float2int_rn(2.5F), 2);
  EXPECT_EQ(__float2int_rn(-3.5F), -4);
  EXPECT_EQ(__float2int_rn(0x1p31F), largest);
  EXPECT_EQ(__float2int_rn(-0x1p32F), least);
  EXPECT_EQ(__float2int_rn(std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(__float2uint_ru(2.25F), 3U);
  EXPECT_EQ(__float2uint_ru(-1.5F), 0U);
}

TEST(LoadBytes, BringsThemByTheBarrierAndNotBefore) {
  std::vector<unsigned> words(24);
  std::iota(words.begin(), words.end(), 1U);
  for (const BulkBug bug : {BulkBug::none, BulkBug::not_waited_for}) {
    bool is_wrong = false;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      simt::SimtDevice device;
      device.seed_schedule(seed);
      const TestBuffer<unsigned> from(device, "from", words);
      const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(words.size()));
      launch_load_words(device, bug, from.data(), static_cast<int>(words.size()), out.data());
      is_wrong |= out.read() != words || !text_of(device.take_findings()).empty();
    }
    EXPECT_EQ(is_wrong, bug == BulkBug::not_waited_for);
  }
}

TEST(LoadBytes, TakesMultiplesOf16) {
  simt::SimtDevice device;
  const TestBuffer<unsigned> from(device, "from", std::vector<unsigned>(8));
  const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(8));
  launch_load_words(device, BulkBug::not_waited_for, from.data() + 1, 4, out.data());
  const std::string findings = text_of(device.take_findings());
  EXPECT_TRUE(findings.starts_with("misaligned access")) << findings;
}

TEST(StoreTransposed, PutsColumnsWhereRowsWere) {
  simt::SimtDevice device;
  std::vector<unsigned> words(128), want(128);
  const auto element = [](unsigned matrix, unsigned row, unsigned column) {
    return 1 + 64 * matrix + 8 * row + column;
  };
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned major = lane / 4, minor = lane % 4 * 2;
      words[32 * i + lane] = element(i, major, minor) | element(i, major, minor + 1) << 16;
      want[32 * i + lane] = element(i, minor, major) | element(i, minor + 1, major) << 16;
    }
  }
  const TestBuffer<unsigned> from(device, "from", words);
  const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(128));
  launch_transpose(device, from.data(), out.data());
  EXPECT_EQ(out.read(), want);
  EXPECT_EQ(text_of(device.take_findings()), "");
}

}  // namespace
}  // namespace attest
