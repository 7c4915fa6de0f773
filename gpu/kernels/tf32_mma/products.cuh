#pragma once

#include "core/attention/plan.hpp"
#include "gpu/kernels/fa2_mma/shape.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/swizzled_tile.cuh"

namespace attest {

template <typename Shape>
struct Tf32Products;

/// A shape of fa2_mma with fp32 inputs, whose products are formed as `products` says: tf32 or
/// tf32_x3.
template <int D_, int Br_, int Bc_, int warps_, int stages_, Products::Value products_>
struct Tf32Shape : Fa2Shape<float, D_, Br_, Bc_, warps_, stages_> {
  static constexpr Products::Value products = products_;
  static constexpr bool splits = products == Products::tf32_x3;
  static_assert(splits || products == Products::tf32);
  template <typename Shape>
  using ProductsOf = Tf32Products<Shape>;
  static constexpr bool keeps_queries = false;  ///< twice the bytes of 16-bit ones
  static constexpr bool takes_any_scale = true;
};

/// The factors of a fragment as the tensor cores read them. hi: rounded to TF32. lo: the rest,
/// which the tensor core itself cuts; only where factors are split.
template <int count, bool splits>
struct Tf32Factors {
  unsigned hi[count];
  unsigned lo[splits ? count : 1];

  __device__ __forceinline__ void set(int i, float x) {
    const float rounded = rounded_to_tf32(x);
    hi[i] = __float_as_uint(rounded);
    if constexpr (splits) lo[i] = __float_as_uint(x - rounded);
  }
};

/// Sums of products: `small` of those that have a lo, apart from those of hi and hi, beside which
/// the tensor core would cut them.
template <bool splits>
struct Tf32Sum {
  float large[4] = {};
  float small[splits ? 4 : 1] = {};

  __device__ __forceinline__ void add(const Tf32Factors<4, splits>& a,
                                      const Tf32Factors<2, splits>& b) {
    if constexpr (splits) {
      mma_16x8x8_tf32(small, a.lo, b.hi);
      mma_16x8x8_tf32(small, a.hi, b.lo);
    }
    mma_16x8x8_tf32(large, a.hi, b.hi);
  }
  __device__ __forceinline__ float total(int e) const {
    if constexpr (splits) return large[e] + small[e];
    return large[e];
  }
};

/// The two products of a warp from fp32 tiles, 8 columns of Q and K or 8 keys a step.
///
/// In P V the keys of a step stand in the order 0, 2, 4, 6, 1, 3, 5, 7: so S leaves the tensor
/// cores where P enters them, and the rows of V that a load takes lie in different banks.
template <typename Shape>
struct Tf32Products {
  static constexpr bool splits = Shape::splits;
  static constexpr int row_tiles = Shape::row_tiles, D = Shape::D, columns = Shape::Bc / 8;
  using Lane = SwizzledLane<float, D>;
  using Left = Tf32Factors<4, splits>;
  using Right = Tf32Factors<2, splits>;
  using Sum = Tf32Sum<splits>;
  struct Queries {};  ///< Q stays in shared memory

  static __device__ __forceinline__ void form_scores(Queries&, SharedAddress Q, int offset,
                                                     SharedAddress K, int key_offset,
                                                     typename Shape::Scores& s) {
    Sum sums[row_tiles][columns];
#pragma unroll
    for (int k = 0; k < D / 8; ++k) {
      Left q[row_tiles];
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        unsigned loaded[4];
        load_matrices(loaded, Lane::at(Q, offset, 16 * i, k));
#pragma unroll
        for (int e = 0; e < 4; ++e) q[i].set(e, __uint_as_float(loaded[e]));
      }
#pragma unroll
      for (int j = 0; j < columns / 2; ++j) {
        unsigned loaded[4];  // columns 8 k and 8 k + 4 of keys 16 j, then of 16 j + 8
        load_matrices(loaded, Lane::at(K, key_offset, 16 * j, k));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Right keys;
          keys.set(0, __uint_as_float(loaded[2 * half]));
          keys.set(1, __uint_as_float(loaded[2 * half + 1]));
#pragma unroll
          for (int i = 0; i < row_tiles; ++i) sums[i][2 * j + half].add(q[i], keys);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < row_tiles; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[i][j][e] = sums[i][j].total(e);
  }

  /// o += P V. Split, the product of a tile is formed apart and added in fp32: a chain over all
  /// keys would be cut at every step.
  template <typename Softmax>
  static __device__ __forceinline__ void add_values(Softmax& softmax, typename Shape::Scores& s,
                                                    float c, SharedAddress V, int,
                                                    typename Shape::Outputs& o) {
    softmax.weigh(s, c);
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const int even = SwizzledTile<float, D>::offset(2 * t, g / 4) + g % 4;
    const int odd = SwizzledTile<float, D>::offset(2 * t + 1, g / 4) + g % 4;
#pragma unroll
    for (int n = 0; n < D / 8; n += slice) {
      Sum sums[row_tiles][slice];
      if constexpr (!splits) {
#pragma unroll
        for (int i = 0; i < row_tiles; ++i)
#pragma unroll
          for (int m = 0; m < slice; ++m)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums[i][m].large[e] = o[i][n + m][e];
      }
#pragma unroll
      for (int k = 0; k < columns; ++k) {
        Left p[row_tiles];
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
          p[i].set(0, s[i][k][0]);  // row g, key 2 t
          p[i].set(1, s[i][k][2]);  // row g + 8
          p[i].set(2, s[i][k][1]);  // row g, key 2 t + 1
          p[i].set(3, s[i][k][3]);
        }
#pragma unroll
        for (int m = 0; m < slice; ++m) {
          Right values;
          values.set(0, value_at(V, even, 8 * k, n + m));
          values.set(1, value_at(V, odd, 8 * k, n + m));
#pragma unroll
          for (int i = 0; i < row_tiles; ++i) sums[i][m].add(p[i], values);
        }
      }
#pragma unroll
      for (int i = 0; i < row_tiles; ++i)
#pragma unroll
        for (int m = 0; m < slice; ++m)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            o[i][n + m][e] = splits ? o[i][n + m][e] + sums[i][m].total(e) : sums[i][m].total(e);
          }
    }
  }

 private:
  static constexpr int slice = 2;  ///< 8 columns each, whose sums are formed at once

  /// Element (row, 8 column) of V from the lane's own place there; `offset` in elements.
  static __device__ __forceinline__ float value_at(SharedAddress V, int offset, int row,
                                                   int column) {
    const SharedAddress at = V + ((offset ^ column % 4 * 8) + row * D + column / 4 * 32) *
                                     static_cast<int>(sizeof(float));
#ifdef __CUDACC__
    return *static_cast<const float*>(__cvta_shared_to_generic(at.value()));
#else
    return *static_cast<const float*>(at.value());
#endif
  }
};

}  // namespace attest
