#include "experiments/tuning/mixed_plans.hpp"

#include <algorithm>
#include <array>

#include "core/run/default_plan.hpp"

namespace attest {
namespace {

/// How tiles are handed out to blocks; all other fields say what a tile is.
constexpr std::array arrangement{&Plan::grid_order, &Plan::group, &Plan::scheduling,
                                 &Plan::key_splits, &Plan::pack_gqa};

Plan arranged_like(Plan plan, const Plan& other) {
  for (const auto field : arrangement) plan.*field = other.*field;
  return plan;
}

}  // namespace

std::vector<Plan> mixed_plans(const KernelInfo& kernel, const Problem& problem,
                              const std::vector<Plan>& offered,
                              const std::vector<Plan>& fastest_first) {
  constexpr std::size_t most_tiles = 2;
  std::vector<Plan> tiles, mixtures;
  for (const Plan& plan : fastest_first) {
    const Plan tile = arranged_like(plan, {});
    if (tiles.size() < most_tiles && std::ranges::find(tiles, tile) == tiles.end()) {
      tiles.push_back(tile);
    }
  }
  for (const Plan& tile : tiles) {
    for (const Plan& other : offered) {
      const Plan plan = arranged_like(tile, other);
      const auto is_in = [&](const std::vector<Plan>& list) {
        return std::ranges::find(list, plan) != list.end();
      };
      if (is_in(offered) || is_in(mixtures)) continue;
      if (is_offered(kernel, problem, offered, plan)) mixtures.push_back(plan);
    }
  }
  return mixtures;
}

}  // namespace attest
