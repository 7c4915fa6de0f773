#pragma once

#include <cstdint>
#include <span>

#include "gpu/kernels/fp32_wgmma/consumer.cuh"
#include "gpu/kernels/fp32_wgmma/split.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// One tile of O: a warp that loads, warpgroups that multiply. The executor is part of its name:
/// both have this template.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    fp32_wgmma(const __grid_constant__ SplitProblem p, std::int64_t first_block) {
  const std::int64_t block = first_block + std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  const TilePosition at = tile_position(p.order, p.order_group, p.grid, block);
  const int head = static_cast<int>(at.head), first_row = static_cast<int>(at.tile) * Shape::Br;
  const int end = min(first_row + Shape::Br, rows_of<typename Shape::Parts>(p, head));
  if (end <= first_row) return;
  const int last_row = row_at<typename Shape::Parts>(p, head, end - 1);
  const int key_tiles = (p.past_key(last_row) + Shape::Bc - 1) / Shape::Bc;

  const SplitShared<Shape> shared(dynamic_shared<unsigned char>());
  const int groups = Shape::rests ? (end - first_row + Shape::group_rows - 1) / Shape::group_rows
                                  : Shape::consumers;
  if (threadIdx.x == 0) shared.init(groups);
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    if (threadIdx.x % warpgroup_threads < 32 && is_elected())
      shared.load(p, head, first_row, key_tiles);
  } else if (!Shape::rests || group < groups) {
    take_registers<Shape::consumer_registers>();
    // The first turn is that of group 0.
    if (Shape::choice.ping_pong && group == Shape::consumers - 1)
      arrive_named(Shape::first_turn, 2 * warpgroup_threads);
    SplitConsumer<Shape>(p, shared, head, group, first_row).run(key_tiles);
  }
}

/// A compiled attention kernel.
struct SplitKernel {
  SplitChoice choice;
  int query_tile, threads, shared_bytes;
  void (*attend)(SplitProblem, std::int64_t first_block);
};

template <Executor home, typename Parts, SplitChoice choice>
constexpr SplitKernel split_kernel() {
  using Sizes = SplitShape<Parts, choice>;
  return {choice, Sizes::Br, Sizes::threads, Sizes::shared_bytes, fp32_wgmma<home, Sizes>};
}

/// Kernels for head dims up to `dim`: those of fp16 parts, the first the one to take without a
/// reason, and that of the bf16 parts; and those that split.
struct SplitKernels {
  int dim;
  std::span<const SplitKernel> fp16;
  SplitKernel bf16;
  void (*split_fp16)(SplitProblem);
  void (*split_bf16)(SplitProblem);
};

/// Defined, for every D that there is, in a file of its own, so that they are compiled side by
/// side.
template <Executor home, int D>
SplitKernels split_kernels();

}  // namespace attest
