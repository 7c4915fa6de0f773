#pragma once

#include <cstdint>

namespace attest {

template <typename Shape>
struct Fa2Products;

/// The sizes that a kernel of the family is compiled for; the letters are those of tile.cuh.
template <typename T_, int D_, int Br_, int Bc_, int warps_, int stages_>
struct Fa2Shape {
  using T = T_;
  static constexpr int D = D_, Br = Br_, Bc = Bc_, warps = warps_, stages = stages_;
  static constexpr int threads = 32 * warps;
  static constexpr int warp_rows = Br / warps;
  static constexpr int row_tiles = warp_rows / 16;  ///< fragments of 16 rows that a warp has
  static_assert(row_tiles >= 1 && Br == 16 * row_tiles * warps && Bc % 16 == 0 && stages >= 1);

  /// The two products of a warp (products.cuh).
  template <typename Shape>
  using ProductsOf = Fa2Products<Shape>;
  /// Dense problems too have scales that are not positive: a test a tile.
  static constexpr bool takes_any_scale = false;
  /// O is divided once, when all keys are in it.
  static constexpr bool divides_every_step = false;

  // Registers of a lane for O, S and Q, of 255 in all.
  static constexpr int output_registers = row_tiles * D / 2, score_registers = row_tiles * Bc / 2;
  static constexpr int query_registers = row_tiles * D / 4;
  /// Q stays in registers where they hold it beside O, S and what else a step needs.
  static constexpr bool keeps_queries = output_registers + score_registers + query_registers <= 176;

  static constexpr int tile_elements = Bc * D;
  static constexpr std::int64_t shared_bytes =
      std::int64_t{Br * D + 2 * stages * tile_elements} * static_cast<std::int64_t>(sizeof(T));

  using Scores = float[row_tiles][Bc / 8][4];  ///< S of a warp: a lane's part of the fragments
  using Outputs = float[row_tiles][D / 8][4];  ///< O of a warp
  using Rows = float[row_tiles][2];            ///< a number for each of a lane's rows
};

/// A Shape's sizes, with O divided after every key tile.
template <typename Shape>
struct Fa2EveryStep : Shape {
  static constexpr bool divides_every_step = true;
};

}  // namespace attest
