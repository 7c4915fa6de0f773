#pragma once

#include <cfloat>

#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// A reference may stay below the largest score of its row by this much, in units of log2: weights
/// are then up to 16, and hardly a tile has to rescale O.
inline constexpr float reference_lag = 4.0F;

/// Online softmax of a warp's rows, whose scores lie in fragments; a lane has the keys 8 j + 2 t
/// and 8 j + 2 t + 1 of its rows 16 i + g and 16 i + g + 8.
///
/// A row's weights are 2^(c s - r), c being scale * log2(e) and r its reference: not the running
/// maximum, but a number at most `reference_lag` below it. r is raised, and O and l rescaled, only
/// when a score passes r by more: until then no lane needs to know another's largest score. What
/// is decided is decided for each row by itself, so no row's bits hang on its neighbours.
template <typename Shape>
struct Fa2Softmax {
  using T = typename Shape::T;
  using Scores = typename Shape::Scores;
  using Rows = typename Shape::Rows;
  static constexpr int row_tiles = Shape::row_tiles, columns = Shape::Bc / 8;

  Rows r, l;               ///< r is -FLT_MAX before the first key; l: of this lane's keys
  Rows below;              ///< what exponents of this tile are below: r, or 0 where r is large
  bool has_large = false;  ///< a large reference in some row of the warp
  Rows divisor;            ///< what O was divided by, of shapes that divide at every step

  __device__ __forceinline__ Fa2Softmax() {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        r[i][h] = -FLT_MAX;
        l[i][h] = 0.0F;
        if constexpr (Shape::divides_every_step) divisor[i][h] = 0.0F;
      }
    }
  }

  /// Raises the references where the tile's scores ask for it. All lanes of the warp call it.
  __device__ __forceinline__ void see(Scores& s, float c, typename Shape::Outputs& o) {
    Rows largest;
    bool has_risen = false;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        largest[i][h] = largest_score(s[i], h) * c;
        has_risen |= largest[i][h] > r[i][h] + reference_lag;
      }
    }
    if (__any_sync(0xffffffffU, has_risen)) raise(largest, o);
    if (has_large) round_large(s, c);
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) below[i][h] = subtracted_reference(r[i][h]);
    }
  }

  /// Weights of keys [16 k, 16 k + 16) as the left operand of P V; l adds them before they are
  /// rounded to T.
  __device__ __forceinline__ void weights(const Scores& s, float c, int k,
                                          unsigned (&p)[row_tiles][4]) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {  // rows g, g + 8 of the first 8 keys, of the others
        const int h = part % 2, j = 2 * k + part / 2;
        const float first = HardwareExp2::of(fmaf(s[i][j][2 * h], c, -below[i][h]));
        const float second = HardwareExp2::of(fmaf(s[i][j][2 * h + 1], c, -below[i][h]));
        l[i][h] += first;
        l[i][h] += second;
        p[i][part] = packed<T>(first, second);
      }
    }
  }

  /// Every score becomes its weight; l adds the tile's sum.
  __device__ __forceinline__ void weigh(Scores& s, float c) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float sum = 0.0F;
#pragma unroll
        for (int j = 0; j < columns; ++j) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& x = s[i][j][2 * h + e];
            x = HardwareExp2::of(fmaf(x, c, -below[i][h]));
            sum += x;
          }
        }
        l[i][h] += sum;
      }
    }
  }

  /// Undoes divide().
  __device__ __forceinline__ void multiply_back(typename Shape::Outputs& o) const {
    multiply_rows(o, divisor);
  }

  /// Divides O, which holds the tile's P V, by the sum of the weights so far.
  __device__ __forceinline__ void divide(typename Shape::Outputs& o) {
    Rows factor;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        divisor[i][h] = row_sum(l[i][h]);
        factor[i][h] = 1.0F / divisor_of(divisor[i][h]);
      }
    }
    multiply_rows(o, factor);
  }

 private:
  static __device__ __forceinline__ void multiply_rows(typename Shape::Outputs& o,
                                                       const Rows& factor) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int n = 0; n < Shape::D / 8; ++n) {
          o[i][n][2 * h] *= factor[i][h];
          o[i][n][2 * h + 1] *= factor[i][h];
        }
      }
    }
  }

  __device__ __forceinline__ void raise(const Rows& largest, typename Shape::Outputs& o) {
    bool is_any_large = false;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float top = row_max(largest[i][h]);
        const float risen = top > r[i][h] + reference_lag ? top : r[i][h];
        const float keep = HardwareExp2::of(r[i][h] - risen);  // 1 for a row that stays
        r[i][h] = risen;
        is_any_large |= is_large_reference(risen);
        l[i][h] *= keep;
#pragma unroll
        for (int n = 0; n < Shape::D / 8; ++n) {
          o[i][n][2 * h] *= keep;
          o[i][n][2 * h + 1] *= keep;
        }
      }
    }
    has_large = __any_sync(0xffffffffU, is_any_large);
  }

  __device__ __forceinline__ void round_large(Scores& s, float c) const {
    const float per_c = 1.0F / c;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (is_large_reference(r[i][h])) round_large_scores(s[i], h, c, per_c, r[i][h]);
      }
    }
  }
};

}  // namespace attest
