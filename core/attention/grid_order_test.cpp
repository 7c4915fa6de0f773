#include "core/attention/grid_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "core/attention/plan.hpp"

namespace attest {
namespace {

std::vector<TilePosition> positions(std::int64_t order, std::int64_t group, const TileGrid& grid) {
  std::vector<TilePosition> all;
  for (std::int64_t block = 0; block < grid.size(); ++block) {
    all.push_back(tile_position(order, group, grid, block));
  }
  return all;
}

constexpr std::int64_t orders = GridOrder::paired;

RC_GTEST_PROP(GridOrder, EveryOrderTakesEveryTileOnce, ()) {
  const TileGrid grid{*rc::gen::inRange<std::int64_t>(1, 40),
                      *rc::gen::inRange<std::int64_t>(1, 40)};
  const std::int64_t order = *rc::gen::inRange<std::int64_t>(0, orders + 1);
  const std::int64_t group = *rc::gen::inRange<std::int64_t>(0, 45);
  std::vector<int> taken(static_cast<std::size_t>(grid.size()));
  for (const TilePosition& at : positions(order, group, grid)) {
    RC_ASSERT(at.head >= 0 && at.head < grid.heads && at.tile >= 0 && at.tile < grid.tiles);
    ++taken[static_cast<std::size_t>(at.head * grid.tiles + at.tile)];
  }
  RC_ASSERT(std::ranges::all_of(taken, [](int times) { return times == 1; }));
}

RC_GTEST_PROP(GridOrder, GroupsOfOneAreQFastestAndOneGroupIsQSlowest, ()) {
  const TileGrid grid{*rc::gen::inRange<std::int64_t>(1, 20),
                      *rc::gen::inRange<std::int64_t>(1, 20)};
  RC_ASSERT(positions(GridOrder::grouped, 1, grid) == positions(GridOrder::q_fastest, 0, grid));
  RC_ASSERT(positions(GridOrder::grouped, 0, grid) == positions(GridOrder::q_slowest, 0, grid));
  RC_ASSERT(positions(GridOrder::grouped, grid.heads, grid) ==
            positions(GridOrder::q_slowest, 0, grid));
}

TEST(GridOrder, NeighboursOfPairedTilesSeeTheSameNumberOfKeys) {
  const TileGrid grid{3, 8};
  for (std::int64_t block = 0; block < grid.size(); block += 2) {
    const TilePosition a = tile_position(GridOrder::paired, 0, grid, block);
    const TilePosition b = tile_position(GridOrder::paired, 0, grid, block + 1);
    EXPECT_EQ(a.head, b.head);
    EXPECT_EQ(a.tile + b.tile, grid.tiles - 1);
  }
}

TEST(GridOrder, LongestFirstNeverGoesUpWithinAGroup) {
  const TileGrid grid{10, 6};
  for (const std::int64_t group : {1, 4, 10}) {
    for (std::int64_t block = 1; block < grid.size(); ++block) {
      const TilePosition before = tile_position(GridOrder::longest_first, group, grid, block - 1);
      const TilePosition now = tile_position(GridOrder::longest_first, group, grid, block);
      if (before.head / group == now.head / group) {
        EXPECT_LE(now.tile, before.tile);
      }
    }
  }
}

// C4. A blog post shows a swizzle that should have brought DRAM traffic from 64.5 to 1.5 GiB:
//   before: b = pid / (H T), h = pid mod (H T) / T, q = pid mod T
//   after:  head = pid / T, q = pid mod T, b = head / H, h = head mod H
// Both are the same map, so it changes nothing; its counters need an order that is q_slowest.
RC_GTEST_PROP(GridOrder, ASwizzleThatOnlyRenamesTheDivisionsChangesNothing, ()) {
  const std::int64_t heads = *rc::gen::inRange<std::int64_t>(1, 9);
  const std::int64_t tiles = *rc::gen::inRange<std::int64_t>(1, 9);
  const TileGrid grid{*rc::gen::inRange<std::int64_t>(1, 9) * heads, tiles};
  for (std::int64_t pid = 0; pid < grid.size(); ++pid) {
    const std::int64_t b = pid / (heads * tiles), h = pid % (heads * tiles) / tiles;
    const TilePosition before{b * heads + h, pid % tiles};
    const std::int64_t head = pid / tiles;
    const TilePosition after{head / heads * heads + head % heads, pid % tiles};
    RC_ASSERT(before == after);
    RC_ASSERT(before == tile_position(GridOrder::q_fastest, 0, grid, pid));
  }
}

TEST(GridOrder, TheOrdersThatShouldDifferDo) {
  const TileGrid grid{8, 4};
  const auto q_fastest = positions(GridOrder::q_fastest, 0, grid);
  EXPECT_EQ(q_fastest, positions(GridOrder::two_dimensional, 0, grid));
  EXPECT_EQ(q_fastest, positions(GridOrder::launch_per_head, 0, grid));
  EXPECT_NE(q_fastest, positions(GridOrder::q_slowest, 0, grid));
  EXPECT_NE(q_fastest, positions(GridOrder::grouped, 2, grid));
  EXPECT_NE(q_fastest, positions(GridOrder::paired, 0, grid));
  EXPECT_NE(positions(GridOrder::grouped, 2, grid), positions(GridOrder::longest_first, 2, grid));
}

}  // namespace
}  // namespace attest
