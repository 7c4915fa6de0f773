#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "gpu/primitives/grid_order.cuh"

namespace attest {

/// A compiled form of a kernel whose tiles are all known to the compiler.
struct WideForm {
  Plan tiles;  ///< without a grid order; head dims up to dim_tile
  std::int64_t shared_floats;
  TileKernels kernels;
};

/// The form that the Plan names, nullptr if it names none.
inline const WideForm* find_wide_form(std::span<const WideForm> forms, const Plan& plan) {
  Plan tiles = plan;
  tiles.grid_order = tiles.group = tiles.scheduling = 0;
  const auto is_named = [&](const WideForm& form) { return form.tiles == tiles; };
  const auto found = std::find_if(forms.begin(), forms.end(), is_named);
  return found == forms.end() ? nullptr : &*found;
}

/// A sentence when no form runs the problem with the Plan, or its grid is beyond CUDA's limits. How
/// much shared memory the device has is asked by launch().
inline std::optional<std::string> why_no_wide_form(std::span<const WideForm> forms,
                                                   const Problem& problem, const Plan& plan) {
  const std::int64_t largest = forms.back().tiles.dim_tile;
  if (problem.head_dim > largest) {
    return "head_dim is " + std::to_string(problem.head_dim) + "; allowed: 1 to " +
           std::to_string(largest);
  }
  const WideForm* const form = find_wide_form(forms, plan);
  if (form == nullptr || form->tiles.dim_tile < problem.head_dim) {
    std::string allowed;
    for (const WideForm& f : forms) {
      if (f.tiles.dim_tile < problem.head_dim) continue;
      if (!allowed.empty()) allowed.append("; ");
      allowed.append(to_string(f.tiles));
    }
    return "the plan is " + to_string(plan) + "; allowed, with any grid order: " + allowed;
  }
  if (plan.scheduling == Scheduling::persistent) {
    return "scheduling is persistent; allowed: one_tile";
  }
  const BlockGrid grid = block_grid(problem, plan);
  if (grid.x > max_grid_x || grid.y > max_grid_y) {
    return "the grid is " + std::to_string(grid.x) + " x " + std::to_string(grid.y) +
           "; allowed: " + std::to_string(max_grid_x) + " x " + std::to_string(max_grid_y);
  }
  return why_order_does_not_fit(plan);
}

/// All forms for the problem's head dim, and the smallest in all grid orders. The first is the
/// fastest: under a causal mask the tiles that see most keys must not be the last ones.
inline std::vector<Plan> wide_plans(std::span<const WideForm> forms, const Problem& problem) {
  const auto unsupported = [&](const Problem& p, const Plan& plan) {
    return why_no_wide_form(forms, p, plan);
  };
  std::vector<Plan> plans;
  for (const WideForm& form : forms) {
    if (!unsupported(problem, form.tiles)) plans.push_back(form.tiles);
  }
  plans = with_grid_orders(plans, problem, unsupported);
  if (problem.mask != Mask::none) {
    const auto is_longest_first = [](const Plan& plan) {
      return plan.grid_order == GridOrder::longest_first;
    };
    const auto first = std::find_if(plans.begin(), plans.end(), is_longest_first);
    if (first != plans.end()) std::rotate(plans.begin(), first, first + 1);
  }
  return plans;
}

/// Launches the form that the Plan names, which why_no_wide_form() has accepted.
template <Executor home = this_executor>  // so that both executors have one each
void launch_wide_form(std::span<const WideForm> forms, const ForwardArguments& a, Device& device) {
  const WideForm& form = *find_wide_form(forms, a.plan);
  const BlockGrid grid = block_grid(a.problem, a.plan);
  launch_output_tiles(form.kernels,
                      {.threads = 32 * form.tiles.warps,
                       .shared_floats = form.shared_floats,
                       .grid_x = grid.x,
                       .grid_y = grid.y},
                      a, device);
}

}  // namespace attest
