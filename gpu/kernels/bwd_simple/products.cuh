#pragma once

#include <type_traits>

#include "gpu/kernels/fa2_mma/products.cuh"
#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/swizzled_tile.cuh"

namespace attest {

// The two products of a warp, whose 16 rows lie in the fragments of row_fragment.cuh:
//   add_dots   s[r][j] += x_r.y_j    rows x of the warp's own tile, all rows y of the other one
//   add_rows   o[r] += w[r][j] y_j   weights w as add_dots left them, all rows y of the other tile
// Once for tensor cores, once in scalar FMAs: the kernels around them are the same.

/// 16-bit elements: mma.sync. Weights are rounded to T.
template <typename Shape>
struct TensorCoreProducts {
  using T = typename Shape::T;
  using Tile = SwizzledTile<T, Shape::D>;
  using Lane = SwizzledLane<T, Shape::D>;
  using Products = Fa2Products<Shape>;

  static __device__ void add_dots(const Tile& x, const Tile& y, typename Shape::Scores& s) {
    typename Products::Queries rows;
    Products::form_scores(rows, x.first, Lane::offset(lane()), y.first,
                          Lane::offset_by_rows(lane()), s);
  }
  static __device__ void add_rows(typename Shape::Scores& w, const Tile& y,
                                  typename Shape::Outputs& o) {
    Rounded rounded;
    Products::add_values(rounded, w, 1.0F, y.first, Lane::offset(lane()), o);
  }

 private:
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  /// Accumulators of columns [16 k, 16 k + 16) are where a left operand wants them [FA2].
  struct Rounded {
    __device__ void weights(const typename Shape::Scores& s, float, int k,
                            unsigned (&p)[1][4]) const {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const pair = s[0][2 * k + i / 2] + i % 2 * 2;
        p[0][i] = packed<T>(pair[0], pair[1]);
      }
    }
  };
};

/// fp32: a lane makes its two rows' columns 8 j + 2 t + e by FMAs, one after the other.
template <typename Shape>
struct ScalarProducts {
  using Tile = SwizzledTile<float, Shape::D>;

  static __device__ void add_dots(const Tile& x, const Tile& y, typename Shape::Scores& s) {
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
      const float4 x0 = four(x, g(), chunk), x1 = four(x, g() + 8, chunk);
#pragma unroll
      for (int j = 0; j < Shape::other / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float4 other = four(y, 8 * j + 2 * t() + e, chunk);
          s[0][j][e] = dot(x0, other, s[0][j][e]);
          s[0][j][2 + e] = dot(x1, other, s[0][j][2 + e]);
        }
      }
    }
  }
  static __device__ void add_rows(const typename Shape::Scores& w, const Tile& y,
                                  typename Shape::Outputs& o) {
    // Columns 8 n + 2 t + e of row j are in chunk 2 n + t / 2, which lies at (2 n + t / 2) ^ (j %
    // 8) (SwizzledTile). Of that only the last bit hangs on the lane: with it taken apart two
    // offsets serve all loads, and registers do not spill.
    static_assert(Tile::group == 8);
    const int half = t() / 2, in_chunk = t() % 2 * 2;
    const int pair[2] = {half * 4 + in_chunk, (half ^ 1) * 4 + in_chunk};
#pragma unroll
    for (int j = 0; j < Shape::other; ++j) {
      // The lane of this row that has column j gives it to the other three.
      const int from = j % 8 / 2;
      const float w0 = __shfl_sync(0xffffffffU, w[0][j / 8][j % 2], from, 4);
      const float w1 = __shfl_sync(0xffffffffU, w[0][j / 8][2 + j % 2], from, 4);
#pragma unroll
      for (int n = 0; n < Shape::D / 8; ++n) {
        const float* const two = y.first + j * Shape::D + (2 * n ^ (j & 6)) * 4 + pair[j & 1];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          o[0][n][e] = fmaf(w0, two[e], o[0][n][e]);
          o[0][n][2 + e] = fmaf(w1, two[e], o[0][n][2 + e]);
        }
      }
    }
  }

 private:
  static __device__ int g() {
    return static_cast<int>(threadIdx.x) % 32 / 4;
  }
  static __device__ int t() {
    return static_cast<int>(threadIdx.x) % 4;
  }
  static __device__ float4 four(const Tile& tile, int row, int chunk) {
    return *reinterpret_cast<const float4*>(tile.at(row, chunk));
  }
  static __device__ float dot(const float4& x, const float4& y, float sum) {
    return fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum))));
  }
};

template <typename Shape>
using BwdProducts = std::conditional_t<std::is_same_v<typename Shape::T, float>,
                                       ScalarProducts<Shape>, TensorCoreProducts<Shape>>;

}  // namespace attest
