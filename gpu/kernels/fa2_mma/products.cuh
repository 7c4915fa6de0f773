#pragma once

#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/swizzled_tile.cuh"

namespace attest {

/// The two products of a warp from 16-bit tiles. `offset`: SwizzledLane::offset() of the lane,
/// for K offset_by_rows(). Each fragment of K or V that is loaded serves all rows of the warp: with
/// 16 rows the loads, not the tensor cores, would set the pace (512 bytes for two instructions
/// where shared memory gives 128 bytes a clock to four tensor cores).
template <typename Shape>
struct Fa2Products {
  using T = typename Shape::T;
  using Lane = SwizzledLane<T, Shape::D>;
  static constexpr int row_tiles = Shape::row_tiles;
  using Fragments = unsigned[row_tiles][4];
  static constexpr int D = Shape::D;

  /// Q of a warp, in registers where the shape keeps it.
  struct Queries {
    Fragments parts[Shape::keeps_queries ? D / 16 : 1];
  };

  /// Fills the registers that keep Q, once it has arrived.
  static __device__ __forceinline__ void load_kept(Queries& q, SharedAddress Q, int offset) {
    if constexpr (Shape::keeps_queries) {
#pragma unroll
      for (int k = 0; k < D / 16; ++k) load_queries(Q, offset, k, q.parts[k]);
    }
  }
  /// s += Q K^T.
  static __device__ __forceinline__ void form_scores(Queries& q, SharedAddress Q, int offset,
                                                     SharedAddress K, int key_offset,
                                                     typename Shape::Scores& s) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      if constexpr (Shape::keeps_queries) {
        score(q.parts[k], K, key_offset, k, s);
      } else {
        load_queries(Q, offset, k, q.parts[0]);
        score(q.parts[0], K, key_offset, k, s);
      }
    }
  }

  /// o += P V of a tile.
  template <typename Softmax>
  static __device__ __forceinline__ void add_values(Softmax& softmax, typename Shape::Scores& s,
                                                    float c, SharedAddress V, int offset,
                                                    typename Shape::Outputs& o) {
#pragma unroll
    for (int k = 0; k < Shape::Bc / 16; ++k) {
      Fragments p;
      softmax.weights(s, c, k, p);
      weigh(p, V, offset, k, o);
    }
  }

 private:
  /// Columns [16 k, 16 k + 16) of the warp's rows of Q.
  static __device__ __forceinline__ void load_queries(SharedAddress Q, int offset, int k,
                                                      Fragments& q) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) load_matrices(q[i], Lane::at(Q, offset, 16 * i, k));
  }

  /// s += what columns [16 k, 16 k + 16) add to Q K^T.
  static __device__ __forceinline__ void score(const Fragments& q, SharedAddress K, int offset,
                                               int k, typename Shape::Scores& s) {
#pragma unroll
    for (int j = 0; j < Shape::Bc / 16; ++j) {
      unsigned keys[4];  // columns 16 k and 16 k + 8 of keys 16 j, then of 16 j + 8
      load_matrices(keys, Lane::at(K, offset, 16 * j, k));
      const unsigned first[2] = {keys[0], keys[1]}, second[2] = {keys[2], keys[3]};
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        mma_16x8x16<T>(s[i][2 * j], q[i], first);
        mma_16x8x16<T>(s[i][2 * j + 1], q[i], second);
      }
    }
  }

  /// o += P V of keys [16 k, 16 k + 16).
  static __device__ __forceinline__ void weigh(const Fragments& p, SharedAddress V, int offset,
                                               int k, typename Shape::Outputs& o) {
#pragma unroll
    for (int n = 0; n < Shape::D / 16; ++n) {
      unsigned values[4];
      load_matrices_transposed(values, Lane::at(V, offset, 16 * k, n));
      const unsigned first[2] = {values[0], values[1]}, second[2] = {values[2], values[3]};
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        mma_16x8x16<T>(o[i][2 * n], p[i], first);
        mma_16x8x16<T>(o[i][2 * n + 1], p[i], second);
      }
    }
  }
};

}  // namespace attest
