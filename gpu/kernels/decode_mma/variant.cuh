#pragma once

#include <cstdint>
#include <span>

#include "gpu/kernels/decode_mma/tile.cuh"

namespace attest {

/// Kernels that are compiled for one shape, and the Plans that choose it.
struct DecodeVariant {
  std::int64_t dim, query_tile, key_tile, warps, stages;
  std::int64_t shared_bytes;
  void (*contiguous)(ForwardArguments, DecodeSizes);
  void (*paged)(ForwardArguments, DecodeSizes);
  void (*contiguous_cluster)(ForwardArguments, DecodeSizes);  ///< Combine::cluster
  void (*paged_cluster)(ForwardArguments, DecodeSizes);
  void (*merge)(ForwardArguments, DecodeSizes);
  void (*prefix)(ForwardArguments, DecodeSizes) = nullptr;  ///< nullptr: it takes no Cascade
};

template <Executor home, typename Shape>
constexpr DecodeVariant decode_variant() {
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
          .merge = decode_merge<home, typename Shape::T, Shape::D>};
}
/// The same, and Cascade::yes: for the longest tiles, as rows of all entries fill them.
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

}  // namespace attest
