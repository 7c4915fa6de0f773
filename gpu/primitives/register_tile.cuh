#pragma once

#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/shared_tile.cuh"

namespace attest {

// A thread holds TM x TN scores in registers: each value that it reads from shared memory serves
// TN or TM FMAs instead of one. The threads of a row stand side by side.

/// Places of a thread's scores in the tile, [Br, Bc], and of its columns of O.
template <int TM, int TN, int columns>
struct RegisterTile {
  int row_threads;  ///< threads of a row
  int row, key;     ///< first of TM, first of TN
  int column;       ///< first of `columns`, and it may lie past the last

  __device__ explicit RegisterTile(int key_tile) : row_threads(key_tile / TN) {
    const int place = static_cast<int>(threadIdx.x) % row_threads;
    row = static_cast<int>(threadIdx.x) / row_threads * TM;
    key = place * TN;
    column = place * columns;
  }
};

/// s[i][j] += the dot product of row i of Q and row j of K over `dims` dims: outer products, one a
/// dim, each score one chain of FMAs in ascending order. Unrolled by 2 and not by nvcc's 4, which
/// costs K8 29 registers and so a quarter of its blocks.
template <int TM, int TN>
__device__ __forceinline__ void add_outer_products(const SharedTile& Q, const SharedTile& K,
                                                   int dims, float (&s)[TM][TN]) {
#pragma unroll 2
  for (int d = 0; d < dims; ++d) {
    float q[TM], k[TN];
#pragma unroll
    for (int i = 0; i < TM; ++i) q[i] = Q.row(i)[d];
#pragma unroll
    for (int j = 0; j < TN; ++j) k[j] = K.row(j)[d];
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
      for (int j = 0; j < TN; ++j) s[i][j] = fmaf(q[i], k[j], s[i][j]);
    }
  }
}

/// s <- scale * s, one rounding each.
template <int TM, int TN>
__device__ __forceinline__ void scale_scores(float (&s)[TM][TN], float scale) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) s[i][j] = scale * s[i][j];
  }
}

/// Writes the thread's scores or weights to its part of a tile.
template <int TM, int TN>
__device__ __forceinline__ void store_tile_part(const float (&s)[TM][TN], const SharedTile& part) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) part.row(i)[j] = s[i][j];
  }
}

/// Overwrites the thread's part of S, whose first key is number `key` of the tile, by the weights
/// exp(S - m) of the keys that are seen.
template <typename Exp, int TN, int TM>
__device__ __forceinline__ void weigh_scores(const SharedTile& own_S, int key,
                                             const int (&seen)[TM], const float (&m)[TM]) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      float& score = own_S.row(i)[j];
      if (key + j < seen[i]) score = exp_below<Exp>(score, m[i]);
    }
  }
}

/// o[i][first_column + c] += sum over the first seen[i] keys of P[i][key] * V[key][c], c in
/// [0, columns): one chain of FMAs each. `seen` must not fall: keys below seen[0] are visited by
/// all rows, later ones, whose V may be NaN for the rows that do not see them, row by row.
template <int columns, int TM, int all_columns>
__device__ __forceinline__ void add_weighted_values(const SharedTile& P, const SharedTile& V,
                                                    const int (&seen)[TM],
                                                    float (&o)[TM][all_columns],
                                                    int first_column = 0) {
  int key = 0;
  for (; key < seen[0]; ++key) {
    float p[TM], v[columns];
#pragma unroll
    for (int i = 0; i < TM; ++i) p[i] = P.row(i)[key];
#pragma unroll
    for (int c = 0; c < columns; ++c) v[c] = V.row(key)[c];
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        o[i][first_column + c] = fmaf(p[i], v[c], o[i][first_column + c]);
      }
    }
  }
  for (; key < seen[TM - 1]; ++key) {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      if (key >= seen[i]) continue;
      const float p = P.row(i)[key];
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        o[i][first_column + c] = fmaf(p, V.row(key)[c], o[i][first_column + c]);
      }
    }
  }
}

}  // namespace attest
