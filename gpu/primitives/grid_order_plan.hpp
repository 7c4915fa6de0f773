#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/grid_order.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// The output tiles of a problem: query_tile rows of one head each.
ATTEST_HOST_DEVICE constexpr TileGrid output_tiles(const Problem& problem, const Plan& plan) {
  return {problem.batch * problem.query_heads, ceil_div(problem.query_len, plan.query_tile)};
}

/// Blocks of one launch: of a launch for one head with launch_per_head. Persistent blocks are never
/// more than these.
struct BlockGrid {
  std::int64_t x = 1, y = 1;
};
inline BlockGrid block_grid(const Problem& problem, const Plan& plan) {
  const TileGrid tiles = output_tiles(problem, plan);
  switch (plan.grid_order) {
    case GridOrder::launch_per_head:
      return {tiles.tiles, 1};
    case GridOrder::two_dimensional:
      return {tiles.tiles, tiles.heads};
    default:
      return {tiles.size(), 1};
  }
}

/// A sentence when grid_order, group and scheduling do not go together. Whether the grid is within
/// CUDA's limits is asked by why_tiles_do_not_fit().
inline std::optional<std::string> why_order_does_not_fit(const Plan& plan) {
  const bool takes_groups =
      plan.grid_order == GridOrder::grouped || plan.grid_order == GridOrder::longest_first;
  if (plan.grid_order < 0 || plan.grid_order > GridOrder::paired) {
    return "grid_order is " + std::to_string(plan.grid_order) + "; allowed: 0 to " +
           std::to_string(GridOrder::paired);
  }
  if (plan.scheduling < 0 || plan.scheduling > Scheduling::persistent) {
    return "scheduling is " + std::to_string(plan.scheduling) + "; allowed: 0 to " +
           std::to_string(Scheduling::persistent);
  }
  if (plan.group < 0 || (plan.group > 0 && !takes_groups)) {
    return "group is " + std::to_string(plan.group) +
           "; allowed: 0, and sizes with grid_order grouped or longest_first";
  }
  if (plan.scheduling == Scheduling::persistent &&
      (plan.grid_order == GridOrder::launch_per_head ||
       plan.grid_order == GridOrder::two_dimensional)) {
    return "scheduling is persistent, which takes tiles of one 1-D launch; allowed grid_order: all "
           "but launch_per_head and two_dimensional";
  }
  return std::nullopt;
}

/// The counter from which persistent blocks take tiles lies at the start of the workspace. 16, so
/// that what a kernel keeps behind it may be read in vectors.
inline std::size_t tile_counter_bytes(const Problem&, const Plan& plan) {
  return plan.scheduling == Scheduling::persistent ? 16 : 0;
}

/// `plans`, which name no order, and behind them every order with the tiles of the first of them:
/// tiles and orders do not meet, so their product is not tried. Groups of 2 and 4 straddle the
/// drawn numbers of heads.
inline std::vector<Plan> with_grid_orders(std::vector<Plan> plans, const Problem& problem,
                                          const UnsupportedCheck& unsupported) {
  if (plans.empty()) return plans;
  const Plan tiles = plans.front();
  const auto add = [&](std::int64_t order, std::int64_t group, std::int64_t scheduling) {
    Plan plan = tiles;
    plan.grid_order = order;
    plan.group = group;
    plan.scheduling = scheduling;
    if (!unsupported(problem, plan)) plans.push_back(plan);
  };
  add(GridOrder::q_fastest, 0, Scheduling::persistent);
  for (const std::int64_t order :
       {GridOrder::q_fastest, GridOrder::q_slowest, GridOrder::launch_per_head,
        GridOrder::two_dimensional, GridOrder::paired, GridOrder::longest_first}) {
    add(order, 0, 0);
  }
  for (const std::int64_t group : {2, 4}) add(GridOrder::grouped, group, 0);
  add(GridOrder::longest_first, 2, Scheduling::persistent);
  return plans;
}

}  // namespace attest
