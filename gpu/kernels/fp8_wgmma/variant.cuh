#pragma once

#include <span>

#include "gpu/kernels/fa3_wgmma/loader.cuh"
#include "gpu/kernels/fp8_wgmma/consumer.cuh"
#include "gpu/kernels/fp8_wgmma/shape.cuh"
#include "gpu/kernels/fp8_wgmma/transposer.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// One block: a warpgroup that loads and transposes, and those that multiply. The executor is part
/// of the name, since both have this template.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    fp8_wgmma(const __grid_constant__ Fp8Parameters p) {
  const Fp8RawRings<Shape> raw(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) raw.init();
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    const int warp = static_cast<int>(threadIdx.x) % warpgroup_threads / 32;
    if (warp > 0) {
      Fp8Transposer<Shape>{raw, raw, warp - 1, p.delay_seed}.run();
    } else if (is_elected()) {
      Fa3Loader<Shape, Fp8RawRings<Shape>> loader{p, raw};
      loader.run();
      loader.end();
    }
  } else {
    take_registers<Shape::consumer_registers>();
    Fp8Consumer<Shape> consumer(p, raw, group);
    consumer.run();
  }
}

/// A compiled kernel, and the Plans that it is for.
struct Fp8Variant {
  Fa3Choice choice;
  int query_tile, threads, shared_bytes;
  void (*kernel)(Fp8Parameters);
};

template <Executor home, typename T, Fa3Choice choice>
constexpr Fp8Variant fp8_variant() {
  using Sizes = Fp8Shape<T, choice>;
  return {choice, Sizes::Br, Sizes::threads, Sizes::shared_bytes, fp8_wgmma<home, Sizes>};
}

template <Executor home, typename T, Fa3Choice... choices>
inline constexpr Fp8Variant fp8_variants_of[] = {fp8_variant<home, T, choices>()...};

/// The variants for head dims up to D, the first the one to take without a reason. Defined, for
/// every D that there is, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T, int D>
std::span<const Fp8Variant> fp8_variants();

}  // namespace attest
