#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/inputs/random.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

// Races are defined by pairs of accesses; the detector keeps one write and one read a word. Random
// programs show that it finds a race whenever there is a pair, and none when there is no pair.

namespace attest {
namespace {

struct Program {
  int blocks, threads, steps;
  bool in_shared;
  std::vector<Instruction> instructions;
};

Program draw_program(std::uint64_t seed, bool with_updates) {
  std::uint64_t index = 0;
  const auto draw = [&](std::int64_t bound) {
    return static_cast<int>(random_below(seed, 7, index++, bound));
  };
  Program p{1 + draw(3), 1 + draw(80), 1 + draw(8), draw(2) == 0, {}};
  const int words = 4 + draw(28), density = 1 + draw(12), write_share = 1 + draw(8);
  const auto count = static_cast<std::size_t>(p.blocks * p.threads * p.steps);
  p.instructions.assign(count, {Step::nothing, 0});
  std::vector<Step> common(static_cast<std::size_t>(p.steps), Step::nothing);
  for (Step& step : common) {
    const int kind = draw(5);
    if (kind == 0) step = Step::sync_block;
    if (kind == 1) step = Step::sync_warp;
    if (kind == 2) step = Step::meet_warp;
  }
  for (std::size_t i = 0; i < count; ++i) {
    Instruction& now = p.instructions[i];
    now.step = common[i % common.size()];
    if (now.step != Step::nothing || draw(p.threads * density / 12 + 1) != 0) continue;
    now.word = draw(words);
    now.step = draw(write_share) == 0 ? Step::write : Step::read;
    if (with_updates && draw(3) == 0) now.step = Step::update;
  }
  return p;
}

struct Event {
  int block, thread, interval, epoch, word;
  Step step;
};

/// Two accesses to a word that nothing orders, at least one a plain write, and not one atomic
/// beside a plain read.
bool is_race(const Event& a, const Event& b, bool in_shared) {
  if (a.word != b.word || (a.step != Step::write && b.step != Step::write)) return false;
  if (a.block != b.block) return !in_shared;
  if (a.thread == b.thread || a.interval != b.interval) return false;
  return a.thread / 32 != b.thread / 32 || a.epoch == b.epoch;
}

bool has_race(const Program& p) {
  std::vector<Event> events;
  for (int t = 0; t < p.blocks * p.threads; ++t) {
    Event now{t / p.threads, t % p.threads, 0, 0, 0, Step::nothing};
    for (int s = 0; s < p.steps; ++s) {
      const Instruction& i = p.instructions[static_cast<std::size_t>(t * p.steps + s)];
      if (i.step == Step::sync_block) ++now.interval;
      if (i.step == Step::sync_warp) ++now.epoch;
      if (i.step != Step::read && i.step != Step::write && i.step != Step::update) continue;
      now.step = i.step;
      now.word = i.word;
      events.push_back(now);
    }
  }
  for (std::size_t a = 0; a < events.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (is_race(events[a], events[b], p.in_shared)) return true;
  return false;
}

std::vector<Finding> findings_of(simt::SimtDevice& device, const Program& p, std::uint64_t seed) {
  const TestBuffer<Instruction> program(device, "program", p.instructions);
  const TestBuffer<int> words(device, "words", std::vector<int>(32));
  const TestBuffer<int> sink(device, "sink",
                             std::vector<int>(static_cast<std::size_t>(p.blocks * p.threads)));
  device.seed_schedule(seed);
  launch_program(device, program.data(), p.steps, words.data(), sink.data(), p.in_shared, p.blocks,
                 p.threads);
  return device.take_findings();
}

TEST(RandomPrograms, haveAFindingExactlyWhenTwoAccessesRace) {
  simt::SimtDevice device;
  int racy = 0;
  constexpr int count = 5000;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const Program p = draw_program(seed, false);
    const bool want = has_race(p);
    racy += want;
    const std::vector<Finding> findings = findings_of(device, p, seed);
    ASSERT_EQ(!findings.empty(), want)
        << "seed " << seed << (want ? "" : ": " + findings.front().message);
    for (const Finding& f : findings) ASSERT_EQ(f.kind, "data race") << f.message;
  }
  // Both answers must be common, or the test shows nothing.
  EXPECT_GT(racy, count / 5);
  EXPECT_LT(racy, count * 4 / 5);
}

TEST(RandomPrograms, withAtomicsHaveNoFindingWhenNothingRaces) {
  simt::SimtDevice device;
  int silent = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Program p = draw_program(seed, true);
    if (has_race(p)) continue;
    ++silent;
    const std::vector<Finding> findings = findings_of(device, p, seed);
    ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << findings.front().message;
  }
  EXPECT_GT(silent, 600);
}

std::vector<int> arrival(std::uint64_t seed) {
  simt::SimtDevice device;
  const TestBuffer<int> order(device, "order", std::vector<int>(4 * 70));
  const TestBuffer<unsigned> counter(device, "counter", {0});
  device.seed_schedule(seed);
  launch_arrival(device, order.data(), counter.data(), 4, 70);
  return order.read();
}

TEST(Schedule, isFixedByTheSeedAndDiffersBetweenSeeds) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int> order = arrival(seed);
    EXPECT_EQ(order, arrival(seed));
    EXPECT_NE(order, arrival(seed + 1));
    std::sort(order.begin(), order.end());
    std::vector<int> all(order.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

}  // namespace

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
