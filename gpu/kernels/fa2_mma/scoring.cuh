#pragma once

#include <cstdint>
#include <numbers>

#include "core/attention/problem.hpp"
#include "gpu/kernels/fa2_mma/shape.cuh"
#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/softcap.cuh"

namespace attest {

/// Map from dot products to scores.
template <typename Shape>
struct Fa2ScoreForm {
  static constexpr int row_tiles = Shape::row_tiles, Bc = Shape::Bc;

  /// Dot products become scores times log2(e), each product rounded: for scales that are not
  /// positive, and for softcaps.
  static __device__ __forceinline__ void form(typename Shape::Scores& s, const Problem& problem) {
    form(s, problem.scale, problem.softcap);
  }
  static __device__ __forceinline__ void form(typename Shape::Scores& s, float scale,
                                              float softcap) {
    if (softcap == 0.0F) {
      for_each(s, [&](float& x) { x *= scale * std::numbers::log2e_v<float>; });
    } else {
      const float per_score = scale / softcap;
      for_each(s, [&](float& x) {
        x = softcapped(x, per_score, softcap) * std::numbers::log2e_v<float>;
      });
    }
  }

  template <typename Change>
  static __device__ __forceinline__ void for_each(typename Shape::Scores& s, const Change& change) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i)
#pragma unroll
      for (int j = 0; j < Bc / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) change(s[i][j][e]);
  }
};

/// Changes to S between the two products, before the softmax sees it.
template <typename Shape, typename Work>
struct Fa2Scoring : Fa2ScoreForm<Shape> {
  static constexpr int row_tiles = Shape::row_tiles, Bc = Shape::Bc;

  /// Scores of keys that a row does not see become -inf. `first_key`, `first_row`: of the lane.
  static __device__ __forceinline__ void hide(typename Shape::Scores& s, const Work& work,
                                              int first_key, int first_row) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = first_row + 16 * i + 8 * h;
        const int end = work.past_key(row) - first_key, begin = work.first_key(row) - first_key;
        hide_scores<Work::is_general>(s[i], h, end, begin);
      }
    }
    if constexpr (Work::is_general) {
      if (work.has_padding()) hide_padding(s, work, first_key);
    }
  }

  static __device__ __forceinline__ void hide_padding(typename Shape::Scores& s, const Work& work,
                                                      int first_key) {
#pragma unroll
    for (int j = 0; j < Bc / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = first_key + 8 * j + e;
        if (key >= work.keys || work.key_mask[key] != 0) continue;
#pragma unroll
        for (int i = 0; i < row_tiles; ++i) {
          s[i][j][e] = -INFINITY;
          s[i][j][2 + e] = -INFINITY;
        }
      }
    }
  }
};

}  // namespace attest
