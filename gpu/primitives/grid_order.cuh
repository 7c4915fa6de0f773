#pragma once

// Kernels whose output tiles are independent run in the order that Plan.grid_order names:
//
//   template <Scheduling::Value scheduling>
//   __global__ void kernel(ForwardArguments a, TileLaunch launch) {
//     for_each_tile<scheduling>(a, launch, [&](const TilePosition& at) { make_tile(a, at); });
//   }
//
// launch_output_tiles() launches them.

#include <algorithm>
#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/primitives/grid_order_plan.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// Facts by which the blocks of one launch find their tiles.
struct TileLaunch {
  std::int64_t first_block = 0;  ///< number of the launch's first block among those of all heads
  unsigned* counter = nullptr;   ///< persistent blocks only: number of the next tile to be taken
};

/// Calls `make_tile` for the output tiles of this block: one, or with persistent scheduling as many
/// as it finds. All threads of the block call it, and `make_tile` may return in some threads
/// earlier than in others.
///
/// Persistent blocks keep a tile's number where dynamic shared memory begins, and only between
/// tiles, so they need no more of it. That costs three barriers a tile; a block with one tile has
/// none. Scheduling is a template parameter because a loop costs registers: with a loop that may
/// run once, K3 spills at the 32 registers with which two of its blocks fit on a multiprocessor.
template <Scheduling::Value scheduling, typename MakeTile>
__device__ void for_each_tile(const ForwardArguments& a, const TileLaunch& launch,
                              const MakeTile& make_tile) {
  const TileGrid tiles = output_tiles(a.problem, a.plan);
  const auto make = [&](std::int64_t block) {
    make_tile(tile_position(a.plan.grid_order, a.plan.group, tiles, block));
  };
  if constexpr (scheduling == Scheduling::persistent) {
    unsigned* const number = dynamic_shared<unsigned>();
    for (;;) {
      __syncthreads();  // no thread uses the shared memory of the last tile any more
      if (threadIdx.x == 0) *number = atomicAdd(launch.counter, 1U);
      __syncthreads();  // the number is there
      const std::int64_t block = *number;
      __syncthreads();  // all have read it before the next tile overwrites it
      if (block >= tiles.size()) return;
      make(block);
    }
  } else {
    make(launch.first_block + std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x);
  }
}

/// The workspace arrives full of NaN. A launch of its own, because no barrier spans blocks. A
/// template, so that every file may instantiate it and GPU and executor have one each.
template <Executor>
__global__ void start_tile_counter(unsigned* counter) {
  *counter = 0;
}

/// A kernel with each scheduling.
struct TileKernels {
  void (*one_tile)(ForwardArguments, TileLaunch) = nullptr;
  void (*persistent)(ForwardArguments, TileLaunch) = nullptr;
};

/// Launches over all output tiles in the Plan's order, with the threads and the shared memory of
/// `needs`, which why_tiles_do_not_fit() has accepted; its grid is that of block_grid(). The
/// workspace begins with tile_counter_bytes().
template <Executor home = this_executor>  // so that both executors have one each
void launch_output_tiles(const TileKernels& kernels, const TileNeeds& needs,
                         const ForwardArguments& a, Device& device) {
  const bool is_persistent = a.plan.scheduling == Scheduling::persistent;
  const auto kernel = is_persistent ? kernels.persistent : kernels.one_tile;
  const dim3 threads(static_cast<unsigned>(needs.threads));
  const std::size_t shared_bytes = static_cast<std::size_t>(needs.shared_floats) * sizeof(float);
  const auto launch_blocks = [&](std::int64_t x, std::int64_t y, const TileLaunch& tiles) {
    launch(kernel, dim3(static_cast<unsigned>(x), static_cast<unsigned>(y)), threads, shared_bytes,
           device, a, tiles);
  };
  if (a.plan.grid_order == GridOrder::launch_per_head) {
    const TileGrid tiles = output_tiles(a.problem, a.plan);
    for (std::int64_t head = 0; head < tiles.heads; ++head) {
      launch_blocks(tiles.tiles, 1, {.first_block = head * tiles.tiles});
    }
  } else if (is_persistent) {
    auto* const counter = static_cast<unsigned*>(a.workspace);
    launch(start_tile_counter<home>, dim3(1), dim3(1), 0, device, counter);
    const std::int64_t at_once = resident_blocks(kernel, threads, shared_bytes, device);
    launch_blocks(std::min(needs.grid_x, at_once), 1, {.counter = counter});
  } else {
    launch_blocks(needs.grid_x, needs.grid_y, {});
  }
}

}  // namespace attest
