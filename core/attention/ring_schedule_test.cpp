#include "core/attention/ring_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "core/attention/distribution.hpp"

namespace attest {
namespace {

constexpr std::array distributions{Distribution::contiguous, Distribution::zigzag,
                                   Distribution::stripe};

Problem problem(Mask mask, std::int64_t queries, std::int64_t keys) {
  return {.query_len = queries, .key_len = keys, .mask = mask};
}

/// Calls visit(problem, plan) for all distributions and masks, numbers of ranks up to 5 and lengths
/// that divide evenly, that do not, and below the number of ranks.
template <typename Visit>
void for_each_ring(const Visit& visit) {
  for (const std::int64_t distribution : distributions) {
    for (const Mask mask : prefix_masks()) {
      for (const std::int64_t ranks : {1, 2, 3, 5}) {
        for (const std::int64_t queries : {0, 1, 3, 20, 37}) {
          for (const std::int64_t keys : {0, 1, 7, 20, 41}) {
            visit(problem(mask, queries, keys), {.ranks = ranks, .distribution = distribution});
          }
        }
      }
    }
  }
}

using Schedule = std::vector<RingStep>(const Problem&, const Plan&, std::int64_t);

template <typename Visit>
void for_each_schedule(const Visit& visit) {
  for_each_ring([&](const Problem& p, const Plan& plan) {
    visit(p, plan, ring_steps);
    visit(p, plan, ring_steps_with_own_last);
  });
}

TEST(RingSchedule, EveryPairThatTheMaskLeavesIsComputedOnceAndNoOther) {
  for_each_schedule([](const Problem& p, const Plan& plan, Schedule* steps_of) {
    std::vector<int> computed(static_cast<std::size_t>(p.query_len * p.key_len));
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
      const auto queries = tokens_of_rank(plan.distribution, p.query_len, plan.ranks, rank);
      for (const RingStep& step : steps_of(p, plan, rank)) {
        const auto keys = tokens_of_rank(plan.distribution, p.key_len, plan.ranks, step.owner);
        for (const RingLaunch& launch : step.launches) {
          for (std::int64_t i = 0; i < launch.queries; ++i) {
            const std::int64_t seen = launch.keys - (launch.is_causal ? launch.queries - 1 - i : 0);
            const auto row = static_cast<std::size_t>(launch.first_query + i);
            for (std::int64_t j = 0; j < seen; ++j) {
              ++computed[static_cast<std::size_t>(queries.at(row) * p.key_len +
                                                  keys.at(static_cast<std::size_t>(j)))];
            }
          }
        }
      }
    }
    for (std::int64_t i = 0; i < p.query_len; ++i) {
      for (std::int64_t j = 0; j < p.key_len; ++j) {
        ASSERT_EQ(computed[static_cast<std::size_t>(i * p.key_len + j)], p.sees(0, i, j) ? 1 : 0)
            << to_string(plan) << ", query " << i << " of " << p.query_len << ", key " << j
            << " of " << p.key_len;
      }
    }
  });
}

TEST(RingSchedule, AStepTakesNoMoreKeysThanItsRowsSee) {
  for_each_schedule([](const Problem& p, const Plan& plan, Schedule* steps_of) {
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
      for (const RingStep& step : steps_of(p, plan, rank)) {
        std::int64_t most = 0;
        for (const RingLaunch& launch : step.launches) most = std::max(most, launch.keys);
        ASSERT_EQ(step.keys, most) << to_string(plan) << ", rank " << rank;
      }
    }
  });
}

TEST(RingSchedule, InEveryStepEachRankHasKeysOfAnotherOneItsOwnFirst) {
  for_each_ring([](const Problem& p, const Plan& plan) {
    std::vector<std::vector<bool>> met(static_cast<std::size_t>(plan.ranks));
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
      const auto steps = ring_steps(p, plan, rank);
      ASSERT_EQ(static_cast<std::int64_t>(steps.size()), plan.ranks);
      ASSERT_EQ(steps[0].owner, rank);
      for (std::size_t s = 0; s < steps.size(); ++s) {
        met[s].resize(static_cast<std::size_t>(plan.ranks));
        ASSERT_FALSE(met[s][static_cast<std::size_t>(steps[s].owner)]) << "two read one rank";
        met[s][static_cast<std::size_t>(steps[s].owner)] = true;
      }
    }
  });
}

/// Pairs of a step's launches.
std::int64_t pairs(const RingStep& step) {
  return std::accumulate(step.launches.begin(), step.launches.end(), std::int64_t{0},
                         [](std::int64_t sum, const RingLaunch& l) {
                           return sum + l.queries * l.keys -
                                  (l.is_causal ? l.queries * (l.queries - 1) / 2 : 0);
                         });
}

TEST(RingSchedule, CausalZigzagIsOneLaunchAStepWithAsManyPairsAtEveryRank) {
  for (const std::int64_t ranks : {2, 3, 8}) {
    const Problem p = problem(Mask::causal_top_left, 16 * ranks, 16 * ranks);
    const Plan plan{.ranks = ranks, .distribution = Distribution::zigzag};
    const auto first = ring_steps(p, plan, 0);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto steps = ring_steps(p, plan, rank);
      for (std::size_t s = 0; s < steps.size(); ++s) {
        EXPECT_EQ(steps[s].launches.size(), 1U) << "rank " << rank << ", step " << s;
        EXPECT_EQ(pairs(steps[s]), pairs(first[s])) << "rank " << rank << ", step " << s;
      }
    }
  }
}

TEST(RingSchedule, HalfOfTheWorkWithOwnKeysIsLeftToTheEnd) {
  for (const Mask mask : {Mask::none, Mask::causal_top_left}) {
    for (const std::int64_t part : {32, 250, 4096}) {
      const Problem p = problem(mask, 2 * part, 2 * part);
      const Plan plan{.ranks = 2, .distribution = Distribution::zigzag};
      const auto plain = ring_steps(p, plan, 1), steps = ring_steps_with_own_last(p, plan, 1);
      ASSERT_EQ(steps.size(), 3U);
      EXPECT_EQ(steps[0].owner, 1);
      EXPECT_EQ(steps[1].owner, 0);
      EXPECT_EQ(steps[2].owner, 1);
      EXPECT_EQ(pairs(steps[1]), pairs(plain[1]));
      EXPECT_EQ(pairs(steps[0]) + pairs(steps[2]), pairs(plain[0]));
      // Cut at a tile of 64 rows, or at the row that is nearest.
      const std::int64_t off = std::abs(pairs(steps[0]) - pairs(steps[2]));
      EXPECT_LE(off, 2 * part * (part > 128 ? 33 : 1)) << part;
      if (part > 128) EXPECT_EQ(steps[0].launches.back().queries % 64, 0);
    }
  }
}

TEST(RingSchedule, CausalZigzagTakesHalfOfTheKeysOfARankBeforeIt) {
  const Problem p = problem(Mask::causal_top_left, 64, 64);
  const Plan plan{.ranks = 2, .distribution = Distribution::zigzag};
  EXPECT_EQ(ring_steps(p, plan, 1)[1].keys, 16);
  EXPECT_EQ(ring_steps(p, plan, 0)[1].keys, 32);
}

}  // namespace
}  // namespace attest
