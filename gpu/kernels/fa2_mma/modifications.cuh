#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/attention/dropout.hpp"
#include "core/attention/problem.hpp"
#include "gpu/kernels/fa2_mma/softmax.cuh"

namespace attest {

/// Bits of the weights that dropout leaves, of a lane: bit 2 j + e of its key 8 j + e of a row.
template <typename Shape>
using Fa2Kept = unsigned[Shape::row_tiles][2];

/// A softmax whose weights fall on their way to P V. l has added them before.
template <typename Shape>
struct Fa2DroppedWeights {
  Fa2Softmax<Shape>& softmax;
  const Fa2Kept<Shape>& kept;

  __device__ __forceinline__ void weights(const typename Shape::Scores& s, float c, int k,
                                          unsigned (&p)[Shape::row_tiles][4]) {
    softmax.weights(s, c, k, p);
#pragma unroll
    for (int i = 0; i < Shape::row_tiles; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const unsigned two = kept[i][part % 2] >> 2 * (2 * k + part / 2);
        p[i][part] &= ((two & 1U) != 0 ? 0xffffU : 0U) | ((two & 2U) != 0 ? 0xffff0000U : 0U);
      }
    }
  }
};

/// Score modifications in the fragments of a warp. `first_key`, `first_row`: of the lane.
template <typename Shape, typename Work>
struct Fa2Modifications {
  static constexpr int row_tiles = Shape::row_tiles, columns = Shape::Bc / 8;
  static_assert(2 * columns <= 32, "a row's bits of Fa2Kept are one register");

  /// A row begins with its sink, as if it had seen a key of that score and of value 0: the sink is
  /// the reference, and one lane of the row's four has its weight, 1.
  static __device__ __forceinline__ void see_sinks(Fa2Softmax<Shape>& softmax, const Work& work,
                                                   int first_row, bool is_first_lane) {
    if (work.sinks == nullptr) return;
    bool is_any_large = false;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float sink = work.sink_reference(first_row + 16 * i + 8 * h);
        if (!(sink > -FLT_MAX)) continue;  // -infinity: there is none
        softmax.r[i][h] = sink;
        softmax.l[i][h] = is_first_lane ? 1.0F : 0.0F;
        is_any_large |= is_large_reference(sink);
      }
    }
    softmax.has_large = __any_sync(0xffffffffU, is_any_large);
  }

  /// Adds ALiBi's terms and the bias to scores in which a natural logarithm counts `unit`. Terms of
  /// 0 change no bit.
  static __device__ __forceinline__ void add_terms(typename Shape::Scores& s, const Work& work,
                                                   int first_key, int first_row, float unit) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = first_row + 16 * i + 8 * h;
        if (work.slopes != nullptr) {
          const float slope = work.slope_of(row);
          const int distance = first_key - work.diagonal_of(row);
          for_each_key(s, i, h, [&](float& x, int key) {
            x = fmaf(-slope * fabsf(static_cast<float>(distance + key)), unit, x);
          });
        }
        if (work.bias != nullptr) {
          const float* const bias = work.bias_of(row) + first_key;
          for_each_key(s, i, h, [&](float& x, int key) {
            if (first_key + key >= work.keys) return;
            // -infinity hides a key whatever its score is, one that overflowed, say.
            x = bias[key] == -INFINITY ? -INFINITY : fmaf(bias[key], unit, x);
          });
        }
      }
    }
  }

  /// Scores of keys in other documents become -inf.
  static __device__ __forceinline__ void hide_documents(typename Shape::Scores& s, const Work& work,
                                                        int first_key, int first_row) {
    if (!work.has_documents()) return;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int document = work.document_of(first_row + 16 * i + 8 * h);
        for_each_key(s, i, h, [&](float& x, int key) {
          if (first_key + key < work.keys && work.key_documents[first_key + key] != document)
            x = -INFINITY;
        });
      }
    }
  }

  /// Finds the weights of a tile that dropout leaves. Two neighbouring keys of a lane are of one
  /// draw.
  static __device__ __forceinline__ void draw(Fa2Kept<Shape>& kept, const Work& work,
                                              const Problem& problem, int first_key,
                                              int first_row) {
    const bool is_first_pair = first_key % 4 == 0;
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        kept[i][h] = 0xffffffffU;
        if (!work.drops()) continue;
        const int row = first_row + 16 * i + 8 * h;
        const int query = work.query_of(row), head = work.query_head + work.head_in_group(row);
        unsigned bits = 0;
#pragma unroll 1
        for (int j = 0; j < columns; ++j) {
          const PhiloxWords words =
              dropout_words(problem, work.entry, head, query, (first_key + 8 * j) / 4);
          const unsigned first = is_first_pair ? words.word[0] : words.word[2];
          const unsigned second = is_first_pair ? words.word[1] : words.word[3];
          bits |= (first >= work.least_kept ? 1U : 0U) << 2 * j;
          bits |= (second >= work.least_kept ? 2U : 0U) << 2 * j;
        }
        kept[i][h] = bits;
      }
    }
  }

  /// Multiplies O by what makes up for the weights that fell: once, in fp32, and not each weight.
  static __device__ __forceinline__ void scale_kept(typename Shape::Outputs& o, const Work& work,
                                                    const Problem& problem) {
    if (!work.drops()) return;
    const float scale = kept_scale(problem);
#pragma unroll
    for (int i = 0; i < row_tiles; ++i)
#pragma unroll
      for (int n = 0; n < Shape::D / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) o[i][n][e] *= scale;
  }

 private:
  /// Calls change(score, key) for the scores of row h of tile i; the lane's keys count from its
  /// first.
  template <typename Change>
  static __device__ __forceinline__ void for_each_key(typename Shape::Scores& s, int i, int h,
                                                      const Change& change) {
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) change(s[i][j][2 * h + e], 8 * j + e);
  }
};

}  // namespace attest
