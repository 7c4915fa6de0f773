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
  TileKernels every_step = {};  ///< of dense problems, O divided at every step
};

// All that is compiled for an executor carries its name: both have these templates.

template <Executor home, typename Shape, Scheduling::Value scheduling>
__global__ void __launch_bounds__(Shape::threads) fa2_mma(ForwardArguments a, TileLaunch launch) {
  for_each_tile<scheduling>(a, launch, [&](const TilePosition& at) {
    Fa2Tile<Shape, DenseWork>::make(a, static_cast<int>(at.head), static_cast<int>(at.tile), 0);
  });
}

template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads)
    fa2_mma_general(ForwardArguments a, Fa2Grid grid, std::int64_t first_block) {
  const std::int64_t block = first_block + std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  const TilePosition at = tile_position(a.plan.grid_order, a.plan.group, grid.tiles, block);
  const auto splits = static_cast<int>(grid.splits), tile = static_cast<int>(at.tile);
  Fa2Tile<Shape, GeneralWork>::make(a, static_cast<int>(at.head), tile / splits, tile % splits);
}

/// Variants that are compiled for a shape besides the dense kernel with one tile a block.
struct Fa2Extras {
  bool persistent = false, general = false, every_step = false;
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
  if constexpr (extras.general) v.general = fa2_mma_general<home, Shape>;
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
