#pragma once

#include <cstdint>

#include "core/operations/quantised_arguments.hpp"
#include "gpu/kernels/fa2_mma/softmax.cuh"

namespace attest {

template <typename T>
struct DecodeRow;
template <typename T>
struct CodeRow;
template <typename Shape>
struct DecodeProducts;
template <typename Shape>
struct CodeProducts;
template <typename Shape>
struct NoKeyScales;
template <typename Shape>
class KeyScales;

/// The sizes that a kernel of the family is compiled for: 16 row_tiles packed rows, and `warps`
/// warps that take Bc keys at a time, each its own, through `stages` tiles of its own. Key: what K
/// and V hold.
template <typename T_, int D_, int row_tiles_, int Bc_, int warps_, int stages_, typename Key_ = T_>
struct DecodeShape {
  using T = T_;
  using Key = Key_;
  using Arguments = ForwardArguments;
  using Row = DecodeRow<T>;
  template <typename Shape>
  using ProductsOf = DecodeProducts<Shape>;
  template <typename Shape>
  using SoftmaxOf = Fa2Softmax<Shape>;
  template <typename Shape>
  using KeyScalesOf = NoKeyScales<Shape>;
  static constexpr int D = D_, row_tiles = row_tiles_, Bc = Bc_, warps = warps_, stages = stages_;
  static constexpr int rows = 16 * row_tiles;
  static constexpr int threads = 32 * warps;
  static constexpr int step_keys = warps * Bc;  ///< keys of a block's step
  static_assert(Bc % 16 == 0 && D % 64 == 0 && stages >= 2);

  // What Fa2Softmax and Fa2Products ask.
  static constexpr bool divides_every_step = false;
  static constexpr bool keeps_queries = row_tiles * (D / 2 + Bc / 2 + D / 4) <= 192;
  using Scores = float[row_tiles][Bc / 8][4];  ///< S of a warp: a lane's part of the fragments
  using Outputs = float[row_tiles][D / 8][4];  ///< O of a warp
  using Rows = float[row_tiles][2];            ///< a number for each of a lane's rows

  static constexpr int tile_elements = Bc * D;
  static constexpr int tile_bytes = tile_elements * static_cast<int>(sizeof(Key));
  static constexpr int stage_bytes = 2 * tile_bytes;
  static constexpr int query_bytes = rows * D * static_cast<int>(sizeof(T));
  /// Rows that the warps add at a time; between two of them O, r, l and 2 floats against conflicts.
  static constexpr int exchanged_rows = 4, row_pitch = D + 4;
  static constexpr int exchange_bytes =
      warps * exchanged_rows * row_pitch * static_cast<int>(sizeof(float));
  static constexpr int shared_bytes =
      2 * query_bytes + exchange_bytes + warps * stages * stage_bytes;
  /// Blocks that an SM of Hopper holds; a block has at least 128 registers for each of its threads.
  static constexpr int fitting_blocks = 227 * 1024 / (shared_bytes + 1024);
  static constexpr int blocks_on_sm =
      fitting_blocks * threads > 512 ? 512 / threads : fitting_blocks;
};

/// A Shape's sizes, with weights in fp16 whatever the format of Q.
template <typename Shape, typename Half>
struct WithWeightsIn : Shape {
  using T = Half;
};

/// Sizes of the kernel where K and V are codes. P V is formed in fp16, which takes a code in one
/// instruction where bf16 takes five, and rounds weights less.
template <typename T, Code code_, int D, int row_tiles, int Bc, int warps, int stages>
struct CodeShape : DecodeShape<T, D, row_tiles, Bc, warps, stages, unsigned char> {
  static constexpr Code code = code_;
  using Arguments = QuantisedArguments;
  using Row = CodeRow<T>;
  template <typename Shape>
  using ProductsOf = CodeProducts<Shape>;
  template <typename Shape>
  using SoftmaxOf = Fa2Softmax<WithWeightsIn<Shape, __half>>;
  template <typename Shape>
  using KeyScalesOf = KeyScales<Shape>;
};

}  // namespace attest
