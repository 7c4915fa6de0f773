#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/base/host_device.hpp"

namespace attest {

/// Shared memory that every GPU from sm_80 on gives a block on request: 99 KiB on sm_86, sm_89 and
/// sm_120, 163 on sm_80, 227 on sm_90 [CUDA C++ Programming Guide, compute capabilities].
inline constexpr std::int64_t portable_shared_bytes = 99 * 1024;
inline constexpr int max_block_threads = 1024;
inline constexpr std::int64_t max_grid_x = (std::int64_t{1} << 31) - 1;
inline constexpr std::int64_t max_grid_y = (std::int64_t{1} << 16) - 1;

ATTEST_HOST_DEVICE constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Head dims that the tiled fp32 kernels claim.
inline constexpr std::int64_t max_head_dim = 128;

/// Needs of a launch of a kernel with runtime tiles.
struct TileNeeds {
  std::int64_t threads = 0;
  std::int64_t shared_floats = 0;
  std::int64_t grid_x = 1;
  std::int64_t grid_y = 1;
};

/// A sentence why a kernel cannot run a problem with a Plan, or nothing.
using UnsupportedCheck = std::function<std::optional<std::string>(const Problem&, const Plan&)>;

/// A sentence when head_dim is too long, when the tiles are no tiles, or when no GPU from sm_80 on
/// is sure to hold them. Both tiles are at least 1 when `needs_of` is asked.
inline std::optional<std::string> why_tiles_do_not_fit(const Problem& problem, const Plan& plan,
                                                       const std::function<TileNeeds()>& needs_of,
                                                       std::int64_t head_dims = max_head_dim) {
  const auto outside = [](const std::string& what, std::int64_t got, std::int64_t low,
                          std::int64_t high) {
    return what + " is " + std::to_string(got) + "; allowed: " + std::to_string(low) + " to " +
           std::to_string(high);
  };
  if (problem.head_dim > head_dims) return outside("head_dim", problem.head_dim, 1, head_dims);
  for (const auto& [name, tile] :
       {std::pair("query_tile", plan.query_tile), std::pair("key_tile", plan.key_tile)}) {
    if (tile < 1 || tile > max_block_threads) return outside(name, tile, 1, max_block_threads);
  }
  if (plan.key_splits != 0) return "the kernel does not split keys; leave key_splits at 0";
  const TileNeeds needs = needs_of();
  const std::int64_t shared_bytes = needs.shared_floats * static_cast<std::int64_t>(sizeof(float));
  if (needs.threads > max_block_threads) {
    return outside("threads of a block", needs.threads, 1, max_block_threads);
  }
  if (shared_bytes > portable_shared_bytes) {
    return outside("shared memory of a block in bytes", shared_bytes, 0, portable_shared_bytes);
  }
  if (needs.grid_x > max_grid_x) return outside("grid.x", needs.grid_x, 1, max_grid_x);
  if (needs.grid_y > max_grid_y) return outside("grid.y", needs.grid_y, 1, max_grid_y);
  return std::nullopt;
}

/// All pairs of tiles of 8, 16, 32 and 64 rows that `unsupported` does not object to: rows within a
/// warp, rows of two warps, unequal tiles, and tiles longer than the problem.
inline std::vector<Plan> tile_plans(const Problem& problem, const UnsupportedCheck& unsupported) {
  constexpr std::array<std::int64_t, 4> sizes{8, 16, 32, 64};
  std::vector<Plan> plans;
  for (const std::int64_t query_tile : sizes) {
    for (const std::int64_t key_tile : sizes) {
      const Plan plan{.query_tile = query_tile, .key_tile = key_tile};
      if (!unsupported(problem, plan)) plans.push_back(plan);
    }
  }
  return plans;
}

/// Longest chain of additions in the normaliser when a tile is summed key by key from 0 and then
/// added to the total.
inline std::int64_t tiled_normaliser_chain(const Problem& problem, const Plan& plan) {
  return std::min(plan.key_tile, problem.key_len) + ceil_div(problem.key_len, plan.key_tile);
}

/// Workspace for m and l of every row, one fp32 each.
inline std::size_t row_state_bytes(const Problem& problem, const Plan&) {
  return static_cast<std::size_t>(problem.rows()) * 2 * sizeof(float);
}

}  // namespace attest
