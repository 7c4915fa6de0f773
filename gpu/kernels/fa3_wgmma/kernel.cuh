#pragma once

#include "gpu/kernels/fa3_wgmma/consumer.cuh"
#include "gpu/kernels/fa3_wgmma/loader.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// The home is part of its name: both have this template.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    fa3_wgmma(const __grid_constant__ Fa3Parameters p) {
  const Fa3Rings<Shape> rings(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) rings.init();
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    if (threadIdx.x % warpgroup_threads < 32 && is_elected()) Fa3Loader<Shape>{p, rings}.run();
  } else {
    take_registers<Shape::consumer_registers>();
    Fa3Consumer<Shape> c(p, rings, group);
    c.run();
  }
}

}  // namespace attest
