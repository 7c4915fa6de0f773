#pragma once

#include <span>

#include "gpu/kernels/fa3_wgmma/consumer.cuh"
#include "gpu/kernels/fa3_wgmma/loader.cuh"
#include "gpu/kernels/fa3_wgmma/ragged_loader.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// One block: a warpgroup that loads, and those that multiply. The executor is part of the
/// name, since both have this template.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    fa3_wgmma(const __grid_constant__ typename Shape::Parameters p) {
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

/// The kernel for entries with lengths, and for K and V in pages.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    fa3_ragged(const __grid_constant__ Fa3RaggedParameters p) {
  const Fa3Rings<Shape> rings(dynamic_shared<unsigned char>());
  if (threadIdx.x == 0) rings.init();
  __syncthreads();
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (group == Shape::consumers) {
    release_registers<Shape::loader_registers>();
    Fa3RaggedLoader<Shape>(p, rings).run();
  } else {
    take_registers<Shape::consumer_registers>();
    Fa3Consumer<Shape> c(p, rings, group);
    c.run();
  }
}

/// A compiled kernel, and the Plans that it is for.
struct Fa3Variant {
  Fa3Choice choice;
  int query_tile, threads, shared_bytes;
  void (*kernel)(Fa3Parameters) = nullptr;
  void (*ragged)(Fa3RaggedParameters) = nullptr;      ///< instead, where the choice says so
  void (*listed)(Fa3ListedParameters) = nullptr;      ///< so too
  void (*ended)(Fa3EndedParameters) = nullptr;        ///< so too
  void (*masked)(Fa3MaskedParameters) = nullptr;      ///< so too, also with a softcap
  void (*modified)(Fa3ModifiedParameters) = nullptr;  ///< so too
};

template <Executor home, typename T, Fa3Choice choice>
constexpr Fa3Variant fa3_variant() {
  using Sizes = Fa3Shape<T, choice>;
  Fa3Variant variant{.choice = choice,
                     .query_tile = Sizes::Br,
                     .threads = Sizes::threads,
                     .shared_bytes = Sizes::shared_bytes};
  if constexpr (choice.ragged) {
    variant.ragged = fa3_ragged<home, Sizes>;
  } else if constexpr (choice.lists) {
    variant.listed = fa3_wgmma<home, Sizes>;
  } else if constexpr (choice.ended) {
    variant.ended = fa3_wgmma<home, Sizes>;
  } else if constexpr (choice.modified) {
    variant.modified = fa3_wgmma<home, Sizes>;
  } else if constexpr (choice.masked) {
    variant.masked = fa3_wgmma<home, Sizes>;
  } else {
    variant.kernel = fa3_wgmma<home, Sizes>;
  }
  return variant;
}

template <Executor home, typename T, Fa3Choice... choices>
inline constexpr Fa3Variant fa3_variants_of[] = {fa3_variant<home, T, choices>()...};

/// The variants for head dims up to D, the first the one to take without a reason. Defined, for
/// every D that there is, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T, int D>
std::span<const Fa3Variant> fa3_variants();

}  // namespace attest
