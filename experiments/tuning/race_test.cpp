#include "experiments/tuning/race.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/inputs/random.hpp"
#include "experiments/tuning/median_interval.hpp"

namespace attest {
namespace {

/// A clock that drifts by 1 % a timing, and adds up to 2 % of noise; contender i takes speeds[i].
struct FakeTimer {
  std::vector<double> speeds;
  std::uint64_t seed = 0;
  std::vector<std::size_t> calls{};

  double operator()(std::size_t contender) {
    const auto call = static_cast<double>(calls.size());
    const double noise = random_uniform(seed, 0, calls.size());
    calls.push_back(contender);
    return speeds[contender] * (1 + 0.001 * call) * (1 + 0.02 * noise);
  }
};

std::vector<RaceTimes> run(FakeTimer& timer, const RaceOptions& options = {}) {
  return race(
      timer.speeds.size(), [&](std::size_t i) { return timer(i); }, options);
}

/// 40 contenders, each 4 % slower than the one before it; the fastest stands anywhere.
FakeTimer forty(std::uint64_t seed) {
  FakeTimer timer{.speeds = {}, .seed = seed};
  for (int i = 0; i < 40; ++i) timer.speeds.push_back(std::pow(1.04, i));
  std::ranges::rotate(timer.speeds, timer.speeds.begin() + static_cast<std::ptrdiff_t>(seed % 40));
  return timer;
}

TEST(Race, IsWonByTheFastestDespiteNoiseAndDrift) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    FakeTimer timer = forty(seed);
    const auto order = run(timer);
    ASSERT_EQ(order.size(), timer.speeds.size());
    EXPECT_EQ(timer.speeds[order.front().contender], 1.0) << seed;
  }
}

TEST(Race, TimesEachContenderOnceARoundAndAllThatAreLeftInTheSameRounds) {
  FakeTimer timer = forty(3);
  const auto order = run(timer);
  // Between two timings of a contender everyone who stays longer is timed once.
  std::map<std::size_t, std::size_t> rounds;
  for (const RaceTimes& one : order) rounds[one.contender] = one.times.size();
  std::map<std::size_t, std::size_t> counted;
  for (const std::size_t contender : timer.calls) {
    const std::size_t round = counted[contender]++;
    for (const auto& [other, stayed] : rounds) {
      if (round >= stayed) continue;
      EXPECT_LE(counted[other], round + 1);
      EXPECT_GE(counted[other] + 1, round + 1);
    }
  }
  EXPECT_EQ(counted, rounds);
}

TEST(Race, OfManyCostsNotMuchMoreThanOneRoundAHeat) {
  FakeTimer timer = forty(1);
  const RaceOptions options;
  const auto order = run(timer);
  const auto heats = static_cast<std::size_t>(std::ceil(std::log2(timer.speeds.size())));
  EXPECT_LE(timer.calls.size(), heats * timer.speeds.size() + options.finalists * options.rounds);
  EXPECT_EQ(order[0].times.size(), options.rounds);
  EXPECT_EQ(order[options.finalists - 1].times.size(), options.rounds);
  // The slowest half was timed once.
  EXPECT_EQ(
      std::ranges::count_if(order, [](const RaceTimes& one) { return one.times.size() == 1; }), 20);
}

TEST(Race, OfFewIsAFinalAndOfOneOrNoneToo) {
  for (const std::size_t few : {0, 1, 2, 3}) {
    FakeTimer timer{.speeds = std::vector<double>(few, 1.0)};
    const auto order = run(timer);
    EXPECT_EQ(order.size(), few);
    EXPECT_EQ(timer.calls.size(), few * RaceOptions{}.rounds);
  }
}

TEST(Race, KeepsEveryContenderInItsResult) {
  FakeTimer timer = forty(2);
  std::set<std::size_t> seen;
  for (const RaceTimes& one : run(timer)) seen.insert(one.contender);
  EXPECT_EQ(seen.size(), timer.speeds.size());
}

// The same numbers as experiments/median_interval.py: values 1 to n.
TEST(MedianInterval, IsThatOfTheSignTest) {
  const auto of = [](int n) {
    std::vector<double> values;
    for (int i = n; i > 0; --i) values.push_back(i);
    return median_interval(values);
  };
  EXPECT_EQ(of(6).median, 3.5);
  EXPECT_EQ(of(6).low, 1);  // 2^-6 on each side
  EXPECT_EQ(of(6).high, 6);
  EXPECT_EQ(of(20).low, 6);  // binomial tables: 6th and 15th of 20
  EXPECT_EQ(of(20).high, 15);
  EXPECT_EQ(of(1).median, 1);
  EXPECT_EQ(of(5).low, 0);
  EXPECT_TRUE(std::isinf(of(5).high));
}

}  // namespace
}  // namespace attest
