#pragma once

#include <cstdint>
#include <span>

#include "gpu/kernels/decode_mma/tile.cuh"
#include "gpu/kernels/simt_types.hpp"

namespace attest {

/// Kernels that are compiled for one shape, and the Plans that choose it.
template <typename Arguments>
struct VariantOf {
  using Kernel = void (*)(Arguments, DecodeSizes);
  std::int64_t dim, query_tile, key_tile, warps, stages;
  std::int64_t shared_bytes;
  Kernel contiguous, paged;
  Kernel contiguous_cluster, paged_cluster;  ///< Combine::cluster; nullptr: it takes none
  Kernel merge;
  Kernel prefix = nullptr;  ///< nullptr: it takes no Cascade
};
using DecodeVariant = VariantOf<ForwardArguments>;
using CodesVariant = VariantOf<QuantisedArguments>;

template <Executor home, typename Shape>
constexpr VariantOf<typename Shape::Arguments> decode_variant() {
  return {.dim = Shape::D,
          .query_tile = Shape::rows,
          .key_tile = Shape::step_keys,
          .warps = Shape::warps,
          .stages = Shape::stages,
          .shared_bytes = Shape::shared_bytes,
          .contiguous = decode_mma<home, Shape, false, UnitList>,
          .paged = decode_mma<home, Shape, true, UnitList>,
          .contiguous_cluster = decode_mma<home, Shape, false, ClusterList>,
          .paged_cluster = decode_mma<home, Shape, true, ClusterList>,
          .merge = decode_merge<home, typename Shape::Row, Shape::D, typename Shape::Arguments>};
}
/// A list of it, empty where the executor does not compile it for the shape's type.
template <Executor home, SimtTypes types, typename Shape>
constexpr auto decode_listed() {
  if constexpr (is_compiled<home, typename Shape::T>(types)) {
    return std::array{decode_variant<home, Shape>()};
  } else {
    return std::array<VariantOf<typename Shape::Arguments>, 0>{};
  }
}
/// The variant of a shape with Cascade::yes besides: for the longest tiles, as rows of all entries
/// fill them.
template <Executor home, typename Shape>
constexpr DecodeVariant cascade_variant() {
  DecodeVariant variant = decode_variant<home, Shape>();
  variant.prefix = decode_prefix<home, Shape>;
  return variant;
}

/// The variants for head dim D, the first the one to take without a reason. Defined, for every D
/// that there is, in a file of its own, so that they are compiled side by side.
template <Executor home, typename T, int D>
std::span<const DecodeVariant> decode_variants();
/// Variants for K and V of codes, otherwise as decode_variants().
template <Executor home, typename T, Code code, int D>
std::span<const CodesVariant> codes_variants();

}  // namespace attest
