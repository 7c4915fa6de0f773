#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/primitives/grid_order.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// Head dims that the register-tile kernels claim, where their registers and shared memory hold
/// them.
inline constexpr std::int64_t max_register_head_dim = 256;

/// A thread may then have 255 registers: a multiprocessor has 65,536.
inline constexpr int max_register_threads = 256;

/// A compiled form of a kernel: what must be known to the compiler so that arrays stay in
/// registers.
struct RegisterVariant {
  std::int64_t rows, keys;  ///< TM, TN
  std::int64_t columns;     ///< of O that a thread makes in a slice
  std::int64_t slices;      ///< most slices of the head dim
  TileKernels kernels;      ///< without a persistent one where that is not offered
};

inline std::int64_t row_threads(const Plan& plan) {
  return plan.key_tile / plan.thread_keys;
}
inline std::int64_t register_threads(const Plan& plan) {
  return plan.query_tile / plan.thread_rows * row_threads(plan);
}
/// Columns of Q, K and V that are in shared memory at a time.
inline std::int64_t slice_dims(const Problem& problem, const Plan& plan) {
  return plan.dim_tile == 0 ? problem.head_dim : plan.dim_tile;
}
/// Floats of a row of V, so that the last thread that has columns has all of them.
inline std::int64_t value_stride(const Problem& problem, const Plan& plan,
                                 const RegisterVariant& variant) {
  return ceil_div(slice_dims(problem, plan), variant.columns) * variant.columns;
}

/// Floats of shared memory that a block needs.
using SharedFloats = std::int64_t (*)(const Problem&, const Plan&, const RegisterVariant&);

inline TileNeeds register_needs(SharedFloats shared_floats, const Problem& problem,
                                const Plan& plan, const RegisterVariant& variant) {
  const BlockGrid grid = block_grid(problem, plan);
  return {.threads = register_threads(plan),
          .shared_floats = shared_floats(problem, plan, variant),
          .grid_x = grid.x,
          .grid_y = grid.y};
}

/// The first form whose registers hold the Plan's tiles, nullptr if none does. The Plan has
/// positive tiles.
inline const RegisterVariant* find_variant(std::span<const RegisterVariant> variants,
                                           const Problem& problem, const Plan& plan) {
  const std::int64_t dims = slice_dims(problem, plan);
  const bool is_persistent = plan.scheduling == Scheduling::persistent;
  for (const RegisterVariant& v : variants) {
    if (is_persistent && v.kernels.persistent == nullptr) continue;
    if (v.rows == plan.thread_rows && v.keys == plan.thread_keys &&
        v.columns * row_threads(plan) >= dims && v.slices * dims >= problem.head_dim) {
      return &v;
    }
  }
  return nullptr;
}

/// A sentence when no form of the kernel runs the Plan, or no GPU from sm_80 on is sure to hold it.
inline std::optional<std::string> why_register_tiles_do_not_fit(
    std::span<const RegisterVariant> variants, SharedFloats shared_floats, const Problem& problem,
    const Plan& plan) {
  const auto is_offered = [&](const RegisterVariant& v) {
    return v.rows == plan.thread_rows && v.keys == plan.thread_keys;
  };
  if (std::none_of(variants.begin(), variants.end(), is_offered)) {
    std::string offered, last;
    for (const RegisterVariant& v : variants) {
      const std::string tile = std::to_string(v.rows) + "x" + std::to_string(v.keys);
      if (tile != last) offered += (offered.empty() ? "" : ", ") + tile;
      last = tile;
    }
    return "thread_rows x thread_keys is " + std::to_string(plan.thread_rows) + "x" +
           std::to_string(plan.thread_keys) + "; allowed: " + offered;
  }
  for (const auto& [name, tile, part] :
       {std::tuple("query_tile", plan.query_tile, plan.thread_rows),
        std::tuple("key_tile", plan.key_tile, plan.thread_keys)}) {
    if (tile < part || tile % part != 0) {
      return std::string(name) + " is " + std::to_string(tile) + "; allowed: multiples of " +
             std::to_string(part);
    }
  }
  if (plan.query_tile > max_block_threads || plan.key_tile > max_block_threads ||
      register_threads(plan) > max_register_threads) {
    return "threads of a block are " + std::to_string(plan.query_tile / plan.thread_rows) + " x " +
           std::to_string(row_threads(plan)) + "; allowed: at most " +
           std::to_string(max_register_threads) + " in all";
  }
  const bool has_slices = variants.front().slices > 1;
  if (!has_slices && plan.dim_tile != 0) {
    return "the kernel does not slice the head dim; leave dim_tile at 0";
  }
  if (has_slices && (plan.dim_tile < 1 || plan.dim_tile > max_register_head_dim)) {
    return "dim_tile is " + std::to_string(plan.dim_tile) + "; allowed: 1 to " +
           std::to_string(max_register_head_dim);
  }
  if (auto reason = why_order_does_not_fit(plan)) return reason;
  const RegisterVariant* const variant = find_variant(variants, problem, plan);
  if (variant == nullptr && plan.scheduling == Scheduling::persistent) {
    return "scheduling is persistent, and with it the kernel has no form for head_dim " +
           std::to_string(problem.head_dim) + " and these tiles; scheduling 0 may have one";
  }
  if (variant == nullptr) {
    return "head_dim is " + std::to_string(problem.head_dim) +
           ", more columns of O than the registers of " + std::to_string(row_threads(plan)) +
           " threads a row hold; a larger key_tile has more threads";
  }
  return why_tiles_do_not_fit(
      problem, plan, [&] { return register_needs(shared_floats, problem, plan, *variant); },
      max_register_head_dim);
}

/// Roundings of the kernels that sum a row's weights of a tile key by key.
inline PrecisionPlan register_tile_precision(const Problem& problem, const Plan& plan) {
  return {.scale_after_dot = true,
          .exp = fast_expf(),
          .rescale = Rescale::deferred,
          .blocks = std::max<std::int64_t>(1, ceil_div(problem.key_len, plan.key_tile)),
          .normaliser_chain = tiled_normaliser_chain(problem, plan),
          .division_error = 0x1p-24,  // one IEEE division
          .log_error = 0x1p-23};      // logf: 1 ulp
}

/// Roundings of a kernel in which a thread sums its TN weights and the lanes of a row meet in a
/// tree.
inline PrecisionPlan shuffled_rows_precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan precision = register_tile_precision(problem, plan);
  const auto lanes = static_cast<std::uint64_t>(row_threads(plan));
  precision.normaliser_chain = plan.thread_keys + std::countr_zero(lanes) + precision.blocks;
  return precision;
}

/// A sentence when the threads of a row are not lanes of one warp that meet in a tree. The tiles
/// are positive.
inline std::optional<std::string> why_rows_are_not_shuffled(const Plan& plan) {
  const std::int64_t threads = row_threads(plan);
  if (threads <= 32 && std::has_single_bit(static_cast<std::uint64_t>(threads))) {
    return std::nullopt;
  }
  return "key_tile / thread_keys, the threads of a row, is " + std::to_string(threads) +
         "; allowed: powers of two up to 32";
}

/// Options with which register tiles are tried.
struct RegisterPlanOptions {
  std::vector<std::int64_t> dim_tiles{0};
  std::int64_t stages = 0;
};

/// Pairs of tiles with register tiles that `unsupported` does not object to. S3's come first: Br =
/// Bc = 32, TM = TN = 4. 24 and 48 are no powers of two: rows then end in the middle of a warp.
/// Every grid order comes with the first pair.
inline std::vector<Plan> register_tile_plans(const Problem& problem,
                                             const UnsupportedCheck& unsupported,
                                             const RegisterPlanOptions& options = {}) {
  constexpr std::array<std::array<std::int64_t, 4>, 14> tiles{{{32, 32, 4, 4},
                                                               {64, 64, 4, 4},
                                                               {16, 32, 4, 4},
                                                               {32, 16, 4, 4},
                                                               {8, 64, 4, 4},
                                                               {64, 8, 4, 4},
                                                               {24, 48, 4, 4},
                                                               {32, 32, 2, 4},
                                                               {16, 64, 2, 4},
                                                               {32, 32, 4, 2},
                                                               {24, 16, 4, 2},
                                                               {64, 32, 8, 4},
                                                               {64, 64, 8, 8},
                                                               {32, 64, 8, 8}}};
  std::vector<Plan> plans;
  for (const auto& [query_tile, key_tile, thread_rows, thread_keys] : tiles) {
    for (const std::int64_t dim_tile : options.dim_tiles) {
      const Plan plan{.query_tile = query_tile,
                      .key_tile = key_tile,
                      .dim_tile = dim_tile,
                      .thread_rows = thread_rows,
                      .thread_keys = thread_keys,
                      .stages = options.stages};
      if (!unsupported(problem, plan)) plans.push_back(plan);
    }
  }
  return with_grid_orders(std::move(plans), problem, unsupported);
}

/// Launches a Plan that why_register_tiles_do_not_fit() has accepted.
template <Executor home = this_executor>  // so that both executors have one each
void launch_register_tiles(std::span<const RegisterVariant> variants, SharedFloats shared_floats,
                           const ForwardArguments& a, Device& device) {
  const RegisterVariant& variant = *find_variant(variants, a.problem, a.plan);
  launch_output_tiles<home>(variant.kernels,
                            register_needs(shared_floats, a.problem, a.plan, variant), a, device);
}

}  // namespace attest
