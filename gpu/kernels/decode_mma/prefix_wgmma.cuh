#pragma once

#include <numbers>
#include <numeric>

#include "gpu/kernels/decode_mma/prefix_consumer.cuh"
#include "gpu/kernels/decode_mma/prefix_loader.cuh"
#include "gpu/kernels/decode_mma/unit_lists.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/tensor_map.cuh"

namespace attest {

/// Cascade::yes with Overlap::yes: a block takes a chunk of the keys that entries share, and 128
/// rows of all entries. Two warpgroups multiply, and two warps of a third load K and V.
template <Executor home, typename T, int D>
__global__ void __launch_bounds__(PrefixShape<T, D>::threads, 1)
    decode_prefix_wgmma(const __grid_constant__ PrefixParameters p) {
  using Shape = PrefixShape<T, D>;
  let_successor_begin();  // it waits for this launch before it ends
  DecodeUnit unit;
  if (!PrefixList(p.a, p.sizes).next(unit)) return;
  const PrefixShared<Shape> shared(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int warp = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp / 4 == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    const int loader = warp % 4;
    if (loader == 0) PrefixLoader<Shape>(p, shared.k(), unit, false).run();
    if (loader == 1) PrefixLoader<Shape>(p, shared.v(), unit, true).run();
  } else {
    take_registers<Shape::consumer_registers>();
    PrefixConsumer<Shape>(p, shared, warp / 4).run(unit);
  }
}

template <Executor home>  // so that both executors have one each
PrefixParameters prefix_parameters(const ForwardArguments& a, const DecodeSizes& sizes, int rows,
                                   int tile_keys) {
  BoxedTensor pool{.first = a.k,
                   .type = a.problem.element_type,
                   .batch = a.page_table.pool_pages,
                   .heads = a.problem.kv_heads,
                   .rows = a.page_table.page_size,
                   .columns = a.problem.head_dim,
                   .strides = a.k_strides,
                   .box_rows = std::gcd<std::int64_t>(a.page_table.page_size, tile_keys)};
  PrefixParameters p{};
  p.k = tensor_map(pool);
  pool.first = a.v;
  pool.strides = a.v_strides;
  p.v = tensor_map(pool);
  p.a = a;
  p.sizes = sizes;
  p.sizes.tile_rows = rows;
  p.box_rows = static_cast<int>(pool.box_rows);
  const float c = a.problem.scale * std::numbers::log2e_v<float>;
  p.c = c > 0.0F ? c : 1.0F;
  p.factor = c > 0.0F ? 1.0F : c;
  return p;
}

template <Executor home, typename T, int D>
std::int64_t launch_prefix(const ForwardArguments& a, const DecodeSizes& sizes, Device& device) {
  using Block = PrefixShape<T, D>;
  const auto kernel = decode_prefix_wgmma<home, T, D>;
  const PrefixParameters p = prefix_parameters<home>(a, sizes, Block::rows, Block::tile_keys);
  const dim3 block(Block::threads);
  launch(kernel, dim3(static_cast<unsigned>(p.sizes.prefix_units(Block::rows))), block,
         Block::shared_bytes, device, p);
  return resident_blocks(kernel, block, Block::shared_bytes, device);
}

/// The one that is compiled for head dim D.
template <Executor home, typename T, int D>
PrefixLaunch prefix_launch();

}  // namespace attest
