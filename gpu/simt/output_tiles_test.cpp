#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "gpu/primitives/grid_order_plan.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

/// Number of times that each tile was made, [heads, tiles].
std::vector<int> counts(const Problem& problem, const Plan& plan, simt::SimtDevice& device) {
  const TileGrid tiles = output_tiles(problem, plan);
  const TestBuffer<int> made(device, "counts",
                             std::vector<int>(static_cast<std::size_t>(tiles.size())));
  const TestBuffer<std::byte> workspace(
      device, "workspace",
      std::vector<std::byte>(tile_counter_bytes(problem, plan), std::byte{0xff}),
      TestBuffer<std::byte>::Contents::unwritten);
  ForwardArguments arguments;
  arguments.problem = problem;
  arguments.plan = plan;
  arguments.o = made.data();
  arguments.workspace = workspace.data();
  launch_count_tiles(arguments, device);
  return made.read();
}

Problem drawn_problem() {
  return {.batch = *rc::gen::inRange<std::int64_t>(1, 4),
          .query_heads = *rc::gen::inRange<std::int64_t>(1, 5),
          .query_len = *rc::gen::inRange<std::int64_t>(1, 40)};
}

RC_GTEST_PROP(OutputTiles, ALaunchMakesEveryTileOnceInEveryOrder, ()) {
  const Problem problem = drawn_problem();
  Plan plan{.query_tile = *rc::gen::inRange<std::int64_t>(1, 9)};
  plan.grid_order = *rc::gen::inRange<std::int64_t>(0, GridOrder::paired + 1);
  if (plan.grid_order == GridOrder::grouped || plan.grid_order == GridOrder::longest_first) {
    plan.group = *rc::gen::inRange<std::int64_t>(0, 14);
  }
  plan.scheduling = *rc::gen::inRange<std::int64_t>(0, Scheduling::persistent + 1);
  RC_PRE(!why_order_does_not_fit(plan));
  simt::SimtDevice device(*rc::gen::inRange(1, 4));
  device.seed_schedule(*rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(std::ranges::all_of(counts(problem, plan, device), [](int n) { return n == 1; }));
  RC_ASSERT(device.take_findings().empty());
}

TEST(OutputTiles, ALaunchPerHeadAndATwoDimensionalGridHaveTheirShapes) {
  const Problem problem{.batch = 2, .query_heads = 3, .query_len = 33};
  const auto grid = [&](std::int64_t order) {
    const BlockGrid g = block_grid(problem, {.query_tile = 16, .grid_order = order});
    return std::pair(g.x, g.y);
  };
  EXPECT_EQ(grid(GridOrder::q_fastest), std::pair(18L, 1L));
  EXPECT_EQ(grid(GridOrder::launch_per_head), std::pair(3L, 1L));
  EXPECT_EQ(grid(GridOrder::two_dimensional), std::pair(3L, 6L));
}

TEST(OutputTiles, GridsBeyondTheLimitsOfCudaAreRefusedWithASentence) {
  const auto reason = [](const Problem& problem, Plan plan) {
    plan.query_tile = plan.key_tile = 1;
    return why_tiles_do_not_fit(problem, plan,
                                [&] {
                                  const BlockGrid grid = block_grid(problem, plan);
                                  return TileNeeds{
                                      .threads = 1, .grid_x = grid.x, .grid_y = grid.y};
                                })
        .value_or("");
  };
  const Problem many_heads{.batch = 1 << 10, .query_heads = 1 << 7, .query_len = 1 << 20};
  EXPECT_EQ(reason(many_heads, {}), "grid.x is 137438953472; allowed: 1 to 2147483647");
  EXPECT_EQ(reason(many_heads, {.scheduling = Scheduling::persistent}),
            "grid.x is 137438953472; allowed: 1 to 2147483647");
  EXPECT_EQ(reason(many_heads, {.grid_order = GridOrder::two_dimensional}),
            "grid.y is 131072; allowed: 1 to 65535");
  EXPECT_EQ(reason(many_heads, {.grid_order = GridOrder::launch_per_head}), "");
}

TEST(OutputTiles, OrdersThatDoNotGoTogetherAreRefusedWithASentence) {
  const auto refused = [](const Plan& plan) { return why_order_does_not_fit(plan).has_value(); };
  EXPECT_FALSE(refused({}));
  EXPECT_FALSE(refused({.grid_order = GridOrder::grouped, .group = 3}));
  EXPECT_FALSE(refused({.grid_order = GridOrder::paired, .scheduling = Scheduling::persistent}));
  EXPECT_TRUE(refused({.grid_order = GridOrder::paired + 1}));
  EXPECT_TRUE(refused({.grid_order = -1}));
  EXPECT_TRUE(refused({.grid_order = GridOrder::q_slowest, .group = 3}));
  EXPECT_TRUE(refused({.grid_order = GridOrder::grouped, .group = -1}));
  EXPECT_TRUE(refused({.scheduling = Scheduling::persistent + 1}));
  EXPECT_TRUE(
      refused({.grid_order = GridOrder::launch_per_head, .scheduling = Scheduling::persistent}));
}

}  // namespace
}  // namespace attest
