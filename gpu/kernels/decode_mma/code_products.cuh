#pragma once

#include "gpu/primitives/codes.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/swizzled_tile.cuh"

namespace attest {

/// The two products of a warp where K and V are tiles of codes, which become numbers of T in
/// registers, and of fp16 beside weights. Matrix loads move 16-bit elements, here two codes each,
/// so that columns come to other lanes than in DecodeProducts:
///
///   Q K^T  lane 4 g + t has dims 16 k + 4 t + {0, 1, 2, 3} of a key, which are taken for columns
///          2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of the product. Q is read in the same order, and the
///          sum of 16 products does not depend on it.
///   P V    lane 4 g + t has dims 16 n + 2 g and 16 n + 2 g + 1 of keys 2 t and 2 t + 1: two
///          fragments, one of even and one of odd dims. Of O a lane then has dims 16 n + 4 t + {0,
///          1, 2, 3}.
template <typename Shape>
struct CodeProducts {
  using T = typename Shape::T;
  using Key = typename Shape::Key;
  using Lane = SwizzledLane<Key, Shape::D>;
  using QueryTile = SwizzledTile<T, Shape::D>;
  static constexpr int row_tiles = Shape::row_tiles, D = Shape::D;
  static constexpr Code code = Shape::code;
  using Fragments = unsigned[row_tiles][4];

  /// Q of a warp, in registers where the shape keeps it.
  struct Queries {
    Fragments parts[Shape::keeps_queries ? D / 16 : 1];
  };

  /// Offset by which a lane reads Q: the lane itself, as its elements are read by ordinary loads.
  static __device__ int query_offset(int lane) { return lane; }
  static __device__ int key_offset(int lane) { return Lane::offset_by_rows(lane); }
  static __device__ int value_offset(int lane) { return Lane::offset(lane); }

  static __device__ __forceinline__ void load_kept(Queries& q, const T* Q, int lane) {
    if constexpr (Shape::keeps_queries) {
#pragma unroll
      for (int k = 0; k < D / 16; ++k) load_queries(Q, lane, k, q.parts[k]);
    }
  }

  /// s += Q K^T, 32 dims of 16 keys at a time.
  static __device__ __forceinline__ void form_scores(Queries& q, const T* Q, int lane,
                                                     SharedAddress K, int key_offset,
                                                     typename Shape::Scores& s) {
#pragma unroll
    for (int pair = 0; pair < D / 32; ++pair) {
#pragma unroll
      for (int j = 0; j < Shape::Bc / 16; ++j) {
        unsigned codes[4];  // dims 32 pair and 32 pair + 16 of keys 16 j, then of 16 j + 8
        load_matrices(codes, Lane::at(K, key_offset, 16 * j, pair));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Fragments own;
          if constexpr (!Shape::keeps_queries) load_queries(Q, lane, 2 * pair + half, own);
          const Fragments& part = Shape::keeps_queries ? q.parts[2 * pair + half] : own;
          unsigned first[2], second[2];
          numbers_of_codes<T, code>(codes[half], first[0], first[1]);
          numbers_of_codes<T, code>(codes[2 + half], second[0], second[1]);
#pragma unroll
          for (int i = 0; i < row_tiles; ++i) {
            mma_16x8x16<T>(s[i][2 * j], part[i], first);
            mma_16x8x16<T>(s[i][2 * j + 1], part[i], second);
          }
        }
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
#pragma unroll
      for (int pair = 0; pair < D / 32; ++pair) {
        unsigned codes[4];  // keys 16 k and 16 k + 8 of dims 32 pair, then of 32 pair + 16
        load_matrices_transposed(codes, Lane::at(V, offset, 16 * k, pair));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          unsigned even[2], odd[2];
          numbers_of_alternate_codes<__half, code>(codes[2 * half], even[0], odd[0]);
          numbers_of_alternate_codes<__half, code>(codes[2 * half + 1], even[1], odd[1]);
          const int n = 2 * (2 * pair + half);
#pragma unroll
          for (int i = 0; i < row_tiles; ++i) {
            mma_16x8x16<__half>(o[i][n], p[i], even);
            mma_16x8x16<__half>(o[i][n + 1], p[i], odd);
          }
        }
      }
    }
  }

  /// The lane's elements of row h of a fragment of O, to the row.
  static __device__ __forceinline__ void leave(const float (&o)[D / 8][4], int h, int lane,
                                               float* row) {
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      *reinterpret_cast<float4*>(row + 16 * n + 4 * (lane % 4)) = {
          o[2 * n][2 * h], o[2 * n + 1][2 * h], o[2 * n][2 * h + 1], o[2 * n + 1][2 * h + 1]};
    }
  }

 private:
  /// Columns [16 k, 16 k + 16) of the warp's rows of Q, in the order above.
  static __device__ __forceinline__ void load_queries(const T* Q, int lane, int k, Fragments& q) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = 16 * i + 8 * h + lane / 4, column = 16 * k + 4 * (lane % 4);
        const uint2 four = *reinterpret_cast<const uint2*>(
            Q + QueryTile::offset(row, column / QueryTile::chunk) + column % QueryTile::chunk);
        q[i][h] = four.x;
        q[i][2 + h] = four.y;
      }
    }
  }
};

}  // namespace attest
