#pragma once

#include "gpu/kernels/fp32_wgmma/consumer.cuh"
#include "gpu/kernels/fp32_wgmma/split.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// Does the tile have rows that are this kernel's? All threads of the block call it.
template <typename Shape>
__device__ bool has_rows(const SplitProblem& p, int head, int first_row) {
  if (Shape::Parts::is_scaled || p.refuses_all) return true;
  const int row = first_row + static_cast<int>(threadIdx.x) * flag_rows;
  bool any = false;
  if (row < min(first_row + Shape::Br, p.queries)) {
    const RowFlags flags = p.flags_of(head, row);
    any = (flags.low | flags.high) != 0;
  }
  return __syncthreads_or(any ? 1 : 0) != 0;
}

/// One tile of O: a warp that loads, warpgroups that multiply.
template <typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    fp32_wgmma(const __grid_constant__ SplitProblem p, std::int64_t first_block) {
  const std::int64_t block = first_block + std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  const TilePosition at = tile_position(p.order, p.order_group, p.grid, block);
  const int head = static_cast<int>(at.head), first_row = static_cast<int>(at.tile) * Shape::Br;
  if (!has_rows<Shape>(p, head, first_row)) return;
  const int last_row = min(first_row + Shape::Br, p.queries) - 1;
  const int key_tiles = (p.past_key(last_row) + Shape::Bc - 1) / Shape::Bc;

  const SplitShared<Shape> shared(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    if (threadIdx.x % warpgroup_threads < 32 && is_elected())
      shared.load(p, head, first_row, key_tiles);
  } else {
    take_registers<Shape::consumer_registers>();
    // The first turn is that of group 0.
    if (Shape::choice.ping_pong && group == Shape::consumers - 1)
      arrive_named(1, 2 * warpgroup_threads);
    SplitConsumer<Shape>(p, shared, head, group, first_row).run(key_tiles);
  }
}

}  // namespace attest
