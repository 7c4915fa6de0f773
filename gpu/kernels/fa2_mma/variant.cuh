#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/kernels/fa2_mma/tile.cuh"
#include "gpu/kernels/simt_types.hpp"
#include "gpu/primitives/grid_order.cuh"

namespace attest {

/// Output tiles of a problem, those of each split beside each other.
struct Fa2Grid {
  TileGrid tiles;
  std::int64_t splits = 1;
};

/// Kernels that are compiled for one shape, and the Plans and problems they are for.
struct Fa2Variant {
  std::int64_t dim, query_tile, key_tile, warps, stages;
  std::int64_t shared_bytes;
  TileKernels dense;
  void (*general)(ForwardArguments, Fa2Grid, std::int64_t first_block);  ///< null: not compiled
  /// The kernel for score modifications; null: not compiled.
  void (*modified)(ForwardArguments, Fa2Grid, std::int64_t first_block) = nullptr;
  TileKernels every_step = {};  ///< of dense problems, O divided at every step
};

// All that is compiled for an executor carries its name: both have these templates.

template <Executor home, typename Shape, Scheduling::Value scheduling>
__global__ void __launch_bounds__(Shape::threads) fa2_mma(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch, [&](const TilePosition& at) {
    Fa2Tile<Shape, DenseWork>::make(a, static_cast<int>(at.head), static_cast<int>(at.tile), 0);
  });
}

template <Executor home, typename Shape, template <typename> typename Work>
__global__ void __launch_bounds__(Shape::threads)
    fa2_mma_general(ForwardArguments a, Fa2Grid grid, std::int64_t first_block) {
  const std::int64_t block = first_block + std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  const TilePosition at = tile_position(a.plan.grid_order, a.plan.group, grid.tiles, block);
  const auto splits = static_cast<int>(grid.splits), tile = static_cast<int>(at.tile);
  Fa2Tile<Shape, Work>::make(a, static_cast<int>(at.head), tile / splits, tile % splits);
}

/// Gives LSE its sink, unrounded, in rows of merged splits that have met nothing but that; a thread
/// a row.
template <Executor home>
__global__ void __launch_bounds__(128) fa2_sinks_alone(ForwardArguments a) {
  const Problem& problem = a.problem;
  const std::int64_t n = std::int64_t{blockIdx.x} * 128 + threadIdx.x;
  const auto partials = PartialResults<>::of(a);
  if (n >= partials.rows) return;
  a.plan.pack_gqa = PackGqa::no;
  // The type of Q, K, V and O does not matter.
  const ModifiedWork<__half> work(a, static_cast<int>(n / problem.query_len));
  const int row = static_cast<int>(n % problem.query_len);
  if (row >= work.rows) return;
  const auto sum = [&](std::int64_t split) { return partials.row(split, n)[partials.columns + 1]; };
  bool is_alone = work.is_sink_alone(row, partials.row(0, n)[partials.columns], sum(0));
  for (std::int64_t split = 1; split < a.plan.key_splits; ++split) is_alone &= sum(split) == 0.0F;
  if (is_alone) work.lse_of(row) = work.sink_of(row);
}

/// Variants that are compiled for a shape besides the dense kernel with one tile a block.
struct Fa2Extras {
  bool persistent = false, general = false, modified = false, every_step = false;
};

template <Executor home, typename Shape, Fa2Extras extras = Fa2Extras{}>
constexpr Fa2Variant fa2_variant() {
  Fa2Variant v{.dim = Shape::D,
               .query_tile = Shape::Br,
               .key_tile = Shape::Bc,
               .warps = Shape::warps,
               .stages = Shape::stages,
               .shared_bytes = Shape::shared_bytes,
               .dense = {.one_tile = fa2_mma<home, Shape, Scheduling::one_tile>},
               .general = nullptr};
  if constexpr (extras.persistent) {
    v.dense.persistent = fa2_mma<home, Shape, Scheduling::persistent>;
  }
  if constexpr (extras.general) v.general = fa2_mma_general<home, Shape, GeneralWork>;
  if constexpr (extras.modified) v.modified = fa2_mma_general<home, Shape, ModifiedWork>;
  if constexpr (extras.every_step) {
    v.every_step.one_tile = fa2_mma<home, Fa2EveryStep<Shape>, Scheduling::one_tile>;
  }
  return v;
}
/// A list of it, empty where the executor does not compile it for the shape's type.
template <Executor home, SimtTypes types, typename Shape, Fa2Extras extras = Fa2Extras{}>
constexpr auto fa2_listed() {
  if constexpr (is_compiled<home, typename Shape::T>(types)) {
    return std::array{fa2_variant<home, Shape, extras>()};
  } else {
    return std::array<Fa2Variant, 0>{};
  }
}

/// The variants for head dims up to D, the first the one to take without a reason. Defined, for
/// every D that there is, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T, int D>
std::span<const Fa2Variant> fa2_variants();

}  // namespace attest
