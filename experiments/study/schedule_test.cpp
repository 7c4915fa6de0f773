#include "experiments/study/schedule.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experiments/study/run_test.hpp"

namespace attest {
namespace {

const KernelInfo& kernel() {
  return *find_kernel("o5_deferred", Executor::cpu);
}
const KernelInfo& baseline() {
  return *find_kernel("o6_split_combine", Executor::cpu);
}

/// 3 problems of 7 points each that differ in their Plan, and a baseline.
std::vector<Point> some_points() {
  std::vector<Point> points;
  for (const int len : {16, 32, 64}) {
    const std::string problem = fmt::format("n{} d8", len);
    for (int tile = 1; tile <= 7; ++tile) {
      Point point = point_of(
          kernel(), problem,
          {{.name = "base", .kernel = &baseline(), .subject = case_of(baseline(), problem)}});
      point.subject.plan.key_tile = tile;
      points.push_back(point);
    }
  }
  return points;
}

std::multiset<std::string> wanted_ids(const std::vector<Group>& groups) {
  std::multiset<std::string> ids;
  for (const Group& group : groups) {
    for (const auto* timed_kernels : {&group.points, &group.baselines}) {
      for (const TimedKernel& c : *timed_kernels) {
        if (c.is_wanted) ids.insert(c.id);
      }
    }
  }
  return ids;
}

TEST(Schedule, HasEveryPointAndEveryBaselineOnce) {
  const auto groups = schedule(some_points(), 1, 3);
  const auto ids = wanted_ids(groups);
  EXPECT_EQ(ids.size(), 3U * 8U);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  for (const Group& group : groups) {
    EXPECT_LE(group.points.size(), 3U);
    ASSERT_EQ(group.baselines.size(), 1U) << "every group is timed beside its baseline";
    for (const TimedKernel& point : group.points) {
      EXPECT_EQ(point.subject.problem, group.baselines[0].subject.problem);
    }
  }
}

TEST(Schedule, IsDrawnBySeed) {
  const auto first_ids = [](std::uint64_t seed) {
    std::string ids;
    for (const Group& group : schedule(some_points(), seed, 3)) ids += group.points[0].id;
    return ids;
  };
  EXPECT_EQ(first_ids(1), first_ids(1));
  EXPECT_NE(first_ids(1), first_ids(2));
}

TEST(Schedule, ABaselineThatIsAPointIsRecordedAsThePoint) {
  std::vector<Point> points = some_points();
  points.push_back(point_of(baseline(), "n16 d8"));
  const auto ids = wanted_ids(schedule(points, 1, 3));
  EXPECT_EQ(ids.size(), 3U * 8U);
  const std::string id = point_id(baseline(), case_of(baseline(), "n16 d8"));
  EXPECT_EQ(ids.count(id), 1U);
}

TEST(Schedule, ShardsShareNoPointAndAreTogetherTheWhole) {
  const auto groups = schedule(some_points(), 5, 2);
  for (const std::int64_t count : {2, 3, 50}) {
    std::multiset<std::string> together;
    for (std::int64_t index = 0; index < count; ++index) {
      together.merge(wanted_ids(groups_to_do(groups, {.index = index, .count = count}, {})));
    }
    EXPECT_EQ(together, wanted_ids(groups)) << count;
  }
}

TEST(Schedule, GroupsOfAProblemAreAlikeInSize) {
  for (const std::size_t most : {1U, 2U, 3U, 4U, 6U, 7U, 100U}) {
    for (const Group& group : schedule(some_points(), 1, most)) {
      const std::size_t parts = (7 + most - 1) / most;
      EXPECT_GE(group.points.size(), 7 / parts) << most;
      EXPECT_LE(group.points.size(), (7 + parts - 1) / parts) << most;
    }
  }
}

TEST(Schedule, NoShardHasAGroupMoreThanItMust) {
  // Nine points of one problem in groups of at most eight: 4 and 5, not 1 and 8.
  std::vector<Point> points;
  for (int tile = 1; tile <= 9; ++tile) {
    points.push_back(point_of(kernel(), "n16 d8"));
    points.back().subject.plan.key_tile = tile;
  }
  const auto size = [&](std::int64_t index, std::int64_t count, std::size_t most) {
    return wanted_ids(groups_to_do(schedule(points, 1, most), {.index = index, .count = count}, {}))
        .size();
  };
  EXPECT_EQ(std::max(size(0, 2, 8), size(1, 2, 8)), 5U);
  for (const std::int64_t index : {0, 1, 2, 3}) {
    EXPECT_GE(size(index, 4, 1), 2U);
    EXPECT_LE(size(index, 4, 1), 3U);
  }
}

TEST(Schedule, WhatIsDoneIsNotDoneAgain) {
  const auto groups = schedule(some_points(), 5, 4);
  const auto all = wanted_ids(groups);
  std::set<std::string> done;
  for (const std::string& id : all) {
    const auto left = wanted_ids(groups_to_do(groups, {}, done));
    EXPECT_EQ(left.size() + done.size(), all.size());
    EXPECT_TRUE(left.contains(id));
    done.insert(id);
  }
  EXPECT_TRUE(groups_to_do(groups, {}, done).empty());
}

}  // namespace
}  // namespace attest
