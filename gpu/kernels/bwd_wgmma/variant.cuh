#pragma once

#include <span>

#include "gpu/kernels/bwd_wgmma/around.cuh"
#include "gpu/kernels/bwd_wgmma/consumer.cuh"
#include "gpu/kernels/bwd_wgmma/key_sizes.cuh"
#include "gpu/kernels/bwd_wgmma/loader.cuh"
#include "gpu/kernels/bwd_wgmma/wide_adder.cuh"
#include "gpu/kernels/bwd_wgmma/wide_pairs.cuh"
#include "gpu/kernels/bwd_wgmma/wide_sums.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// One block: warpgroups that multiply, and one that loads and sends dQ. The executor is part of
/// the name, since both have this template.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    bwd_wgmma(const __grid_constant__ BwdParameters p) {
  const BwdRings<Shape> rings(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) rings.init();
  __syncthreads();
  // Uniform over the warp, and known to be.
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::groups) {
    release_registers<Shape::loader_registers>();
    const int warp = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32 % 4, 0);
    if (warp == 0 && is_elected()) BwdLoader<Shape>{{p, rings}}.run();
    if (warp == 1 && is_elected()) BwdGradientLoader<Shape>{{p, rings}}.run();
    if (warp >= 2 && warp < 2 + Shape::panels && is_elected()) {
      BwdAdder<Shape>{p, rings, warp - 2}.run();
    }
  } else if (group == 0) {
    take_registers<Shape::consumer_registers>();
    BwdConsumer<Shape, true>(p, rings, 0).run();
  } else {
    take_registers<Shape::consumer_registers>();
    // A constant where there is but one.
    BwdConsumer<Shape, false>(p, rings, Shape::groups == 2 ? 1 : group).run();
  }
}

/// The kernel for wide heads.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    bwd_wide_wgmma(const __grid_constant__ BwdParameters p) {
  const BwdWideRings<Shape> rings(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) rings.init();
  __syncthreads();
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == 0) {
    if constexpr (Shape::pair_registers > Shape::registers_at_launch) {
      take_registers<Shape::pair_registers>();
    } else {
      release_registers<Shape::pair_registers>();
    }
    BwdPairGroup<Shape>(p, rings).run();
  } else if (group == 1) {
    take_registers<Shape::sum_registers>();
    BwdSumGroup<Shape, true>(p, rings).run();
  } else if (group == 2) {
    take_registers<Shape::sum_registers>();
    BwdSumGroup<Shape, false>(p, rings).run();
  } else {
    release_registers<Shape::loader_registers>();
    const int warp = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32 % 4, 0);
    if (warp == 0 && is_elected()) BwdLoader<Shape>{{p, rings}}.run();
    if (warp == 1 && is_elected()) BwdGradientLoader<Shape>{{p, rings}}.run();
    if (warp == 2 && is_elected()) BwdWideAdder<Shape>{p, rings}.run();
  }
}

/// A compiled kernel, what runs before and after it, and the Plans that they are for.
struct BwdVariant {
  BwdChoice choice;
  int key_tile, value_keys;  ///< keys of a block; of V in a copy
  int threads, shared_bytes;
  bool is_wide;
  void (*kernel)(BwdParameters);
  void (*key_sizes)(BackwardArguments, BwdSums);  ///< null but in units
  void (*prepare)(BackwardArguments, BwdSums);
  void (*convert)(BackwardArguments, BwdSums);
};

template <Executor home, typename T, BwdChoice choice>
constexpr BwdVariant bwd_variant() {
  using Sizes = BwdShape<T, choice>;
  return {choice,
          Sizes::Bc,
          Sizes::group_keys,
          Sizes::threads,
          Sizes::shared_bytes,
          false,
          bwd_wgmma<home, Sizes>,
          choice.in_units ? bwd_key_sizes<home, T, choice.dim> : nullptr,
          bwd_prepare<home, T, choice.dim, choice.in_units>,
          bwd_convert<home, T, choice.dim, choice.in_units>};
}
template <Executor home, typename T, BwdChoice choice>
constexpr BwdVariant bwd_wide_variant() {
  using Sizes = BwdWideShape<T, choice>;
  return {choice,
          Sizes::Bc,
          Sizes::group_keys,
          Sizes::threads,
          Sizes::shared_bytes,
          true,
          bwd_wide_wgmma<home, Sizes>,
          nullptr,
          bwd_prepare<home, T, choice.dim, false>,
          bwd_convert<home, T, choice.dim, false>};
}

/// A list of it, empty where the executor does not compile it for this type.
template <Executor home, typename T, BwdChoice choice>
constexpr auto bwd_listed() {
  if constexpr (is_compiled<home, T>(choice.simt)) {
    return std::array{bwd_variant<home, T, choice>()};
  } else {
    return std::array<BwdVariant, 0>{};
  }
}

template <Executor home, typename T, BwdChoice... choices>
inline constexpr auto bwd_variants_of = joined(bwd_listed<home, T, choices>()...);
template <Executor home, typename T, BwdChoice... choices>
inline constexpr BwdVariant bwd_wide_variants_of[] = {bwd_wide_variant<home, T, choices>()...};

/// The variants for head dims up to D, the first the one to take without a reason. Defined, for
/// every D that there is, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T, int D>
std::span<const BwdVariant> bwd_variants();

}  // namespace attest
