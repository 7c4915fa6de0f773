#include "experiments/timing/rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

/// Entrant c takes c + 1 ms; what drifts meets a whole round; noise meets each timing.
struct Machine {
  double noise = 0, drift = 0;
  std::vector<std::size_t> order{};

  double operator()(std::size_t c) {
    order.push_back(c);
    const auto n = static_cast<double>(order.size());
    const double wobble = noise * random_normal(7, 0, order.size());
    return static_cast<double>(c + 1) * (1 + drift * n) * (1 + wobble);
  }
};

TEST(Rounds, APointIsTimedUntilItsRatioIsKnown) {
  Machine machine{.noise = 0.02};
  const RoundsOptions options{.points = 1, .peers = 1, .target = 0.01};
  const auto times = timed_rounds(options, {.time = [&](std::size_t c) { return machine(c); }});
  EXPECT_GT(times[0].size(), fewest_values);
  EXPECT_LT(times[0].size(), options.most_rounds);
  const MedianInterval ratio = speed_over(times[0], times[1]);
  EXPECT_LE(relative_half_width(ratio), options.target);
  EXPECT_LT(ratio.low, 2);
  EXPECT_GT(ratio.high, 2);
}

TEST(Rounds, DriftsDoNotMatterForRatios) {
  Machine machine{.drift = 0.02};
  const RoundsOptions options{.points = 1, .peers = 1, .target = 0.05};
  const auto times = timed_rounds(options, {.time = [&](std::size_t c) { return machine(c); }});
  const MedianInterval time = median_interval(times[0]), ratio = speed_over(times[0], times[1]);
  EXPECT_GT(relative_half_width(time), options.target) << "the time itself is not known that well";
  // Of two neighbours 1 + drift n one is at most 1 + drift times the other.
  EXPECT_GE(ratio.median, 2 / (1 + machine.drift));
  EXPECT_LE(ratio.median, 2 * (1 + machine.drift));
}

/// Looking after every round takes some of the confidence: of 5 % of misses it makes fewer than
/// twice as many, at the noise where it looks most often.
TEST(Rounds, EndingWhenTheIntervalIsNarrowCostsLessThanAsManyMissesAgain) {
  constexpr int runs = 2000;
  const RoundsOptions options{.points = 1, .peers = 1, .target = 0.01};
  int misses = 0, ended_early = 0;
  std::uint64_t timing = 0;
  for (int run = 0; run < runs; ++run) {
    const auto times =
        timed_rounds(options, {.time = [&](std::size_t) {
                       return 1 + 2 * options.target * random_normal(11, 0, ++timing);
                     }});
    const MedianInterval ratio = speed_over(times[0], times[1]);
    misses += ratio.low <= 1 && 1 <= ratio.high ? 0 : 1;
    ended_early += times[0].size() < options.most_rounds ? 1 : 0;
  }
  EXPECT_GT(ended_early, runs / 2);
  EXPECT_LT(misses, 2 * runs / 20);
  RecordProperty("misses", misses);
}

TEST(Rounds, WhoIsKnownLeavesAndPeersStay) {
  Machine machine;
  const auto noisy = [&](std::size_t c) {
    const double ms = machine(c);
    return c == 1 ? ms * (1 + 0.05 * random_normal(3, 1, machine.order.size())) : ms;
  };
  const auto times = timed_rounds({.points = 2, .peers = 1, .target = 0.01}, {.time = noisy});
  EXPECT_EQ(times[0].size(), fewest_values);
  EXPECT_GT(times[1].size(), fewest_values);
  EXPECT_EQ(times[2].size(), times[1].size());
}

TEST(Rounds, RepeatsAreForAllAndNoTarget) {
  Machine machine;
  const auto times = timed_rounds({.points = 2, .peers = 1, .repeats = 3},
                                  {.time = [&](std::size_t c) { return machine(c); }});
  for (const auto& of_one : times) EXPECT_EQ(of_one.size(), 3U);
  EXPECT_EQ(relative_half_width(median_interval(times[0])), INFINITY);
}

TEST(Rounds, TimeThatIsOverEndsThemOnceThereIsAnInterval) {
  Machine machine{.noise = 1};
  const auto times = timed_rounds({.points = 1, .target = 1e-9, .is_over = [] { return true; }},
                                  {.time = [&](std::size_t c) { return machine(c); }});
  EXPECT_EQ(times[0].size(), fewest_values);
  const auto endless = timed_rounds({.points = 1, .target = 1e-9, .most_rounds = 20},
                                    {.time = [&](std::size_t c) { return machine(c); }});
  EXPECT_EQ(endless[0].size(), 20U);
}

TEST(Rounds, TheOrderWithinARoundIsDrawnAnew) {
  Machine machine;
  (void)timed_rounds({.points = 4, .repeats = 24},
                     {.time = [&](std::size_t c) { return machine(c); }});
  std::map<std::size_t, int> first;
  for (std::size_t round = 0; round < 24; ++round) {
    const auto begin = machine.order.begin() + static_cast<std::ptrdiff_t>(4 * round);
    std::vector<std::size_t> of_round(begin, begin + 4);
    ++first[of_round[0]];
    std::ranges::sort(of_round);
    EXPECT_EQ(of_round, (std::vector<std::size_t>{0, 1, 2, 3}));
  }
  EXPECT_EQ(first.size(), 4U) << "each was first in some round";
}

TEST(Rounds, EachRoundBeginsBeforeAnybodyIsTimedInIt) {
  std::vector<std::size_t> timed_before;
  std::size_t timed = 0;
  const Timing timing{.time =
                          [&](std::size_t) {
                            ++timed;
                            return 1.0;
                          },
                      .begin_round = [&] { timed_before.push_back(timed); }};
  (void)timed_rounds({.points = 2, .peers = 1, .repeats = 3}, timing);
  EXPECT_EQ(timed_before, (std::vector<std::size_t>{0, 3, 6}));
  timed_before.clear();
  timed = 0;
  (void)race(4, timing, {.finalists = 2, .rounds = 3});
  EXPECT_EQ(timed_before, (std::vector<std::size_t>{0, 4, 6}));
}

TEST(Rounds, NaNIsNeverNarrowEnough) {
  EXPECT_EQ(relative_half_width({.median = NAN, .low = NAN, .high = NAN}), INFINITY);
  EXPECT_EQ(relative_half_width({.median = 0, .low = 0, .high = 0}), INFINITY);
}

/// A clock that drifts by 1 % a timing, and adds up to 2 % of noise; entrant i takes speeds[i].
struct FakeTimer {
  std::vector<double> speeds;
  std::uint64_t seed = 0;
  std::vector<std::size_t> calls{};

  double operator()(std::size_t entrant) {
    const auto call = static_cast<double>(calls.size());
    const double noise = random_uniform(seed, 0, calls.size());
    calls.push_back(entrant);
    return speeds[entrant] * (1 + 0.001 * call) * (1 + 0.02 * noise);
  }
};

std::vector<RaceTimes> run(FakeTimer& timer, const RaceOptions& options = {}) {
  return race(timer.speeds.size(), {.time = [&](std::size_t i) { return timer(i); }}, options);
}

/// 40 entrants, each 4 % slower than the one before it; the fastest stands anywhere.
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
    EXPECT_EQ(timer.speeds[order.front().entrant], 1.0) << seed;
  }
}

TEST(Race, TimesEachEntrantOnceARoundAndAllThatAreLeftInTheSameRounds) {
  FakeTimer timer = forty(3);
  const auto order = run(timer);
  // Between two timings of an entrant everyone who stays longer is timed once.
  std::map<std::size_t, std::size_t> rounds;
  for (const RaceTimes& one : order) rounds[one.entrant] = one.times.size();
  std::map<std::size_t, std::size_t> counted;
  for (const std::size_t entrant : timer.calls) {
    const std::size_t round = counted[entrant]++;
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

TEST(Race, KeepsEveryEntrantInItsResult) {
  FakeTimer timer = forty(2);
  std::set<std::size_t> seen;
  for (const RaceTimes& one : run(timer)) seen.insert(one.entrant);
  EXPECT_EQ(seen.size(), timer.speeds.size());
}

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
