#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

// Register tiles that feed on 128-bit loads. A warp of 4 x 8 lanes makes 32 rows by 64 columns of
// a product whose factors lie in shared memory with the reduction index slowest, so that a lane
// finds the 8 rows and the 8 columns that it needs for one step of the sum in groups of four.

inline constexpr int lane_rows = 8, lane_columns = 8;
inline constexpr int warp_rows = 4 * lane_rows, warp_columns = 8 * lane_columns;

/// Place of a lane: rows 4 ty + {0, 1, 2, 3} and 16 more, columns 4 tx + {0, 1, 2, 3} and 32 more.
///
/// In two lanes of a pair tx differs, in two pairs ty: in every half warp each 16 bytes are then
/// wanted twice by neighbours, and the hardware serves half a warp's 128-bit loads at once instead
/// of a quarter. Measured on an H200 (ncu): 2 wavefronts a load instead of 3.
struct WideLane {
  int tx, ty;

  __device__ WideLane() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    tx = (lane & 1) | (lane >> 1 & 6);
    ty = (lane >> 1 & 1) | (lane >> 3 & 2);
  }
  __device__ int row(int i) const { return 4 * ty + i / 4 * 16 + i % 4; }
  __device__ int column(int j) const { return 4 * tx + j / 4 * 32 + j % 4; }
};

/// The result of `combine`, commutative, over the 8 lanes of a row, the same in each. All lanes of
/// the warp take part.
template <typename Combine>
__device__ float over_wide_row(float x, const Combine& combine) {
  for (const int lanes : {1, 4, 8}) x = combine(x, __shfl_xor_sync(0xffffffffU, x, lanes));
  return x;
}

inline __device__ float4 load4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
inline __device__ void store4(float* to, float a, float b, float c, float d) {
  *reinterpret_cast<float4*>(to) = make_float4(a, b, c, d);
}
inline __device__ void unpack(const float4& four, float* to) {
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}
/// Loads n / 4 groups of four, `apart` floats from one to the next.
template <int n>
__device__ void load_groups(const float* from, int apart, float (&to)[n]) {
#pragma unroll
  for (int g = 0; g < n / 4; ++g) unpack(load4(from + g * apart), to + 4 * g);
}

/// sum += a b^T. Along one row and back the next, so that neighbours share a factor: an FMA that
/// fetches three new operands takes the register file two cycles.
template <int rows, int columns>
__device__ __forceinline__ void add_outer(float (&sum)[rows][columns], const float (&a)[rows],
                                          const float (&b)[columns]) {
#pragma unroll
  for (int i = 0; i < rows; ++i) {
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const int j = i % 2 == 0 ? n : columns - 1 - n;
      sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
    }
  }
}

/// s += the lane's rows of Q times its columns of K^T over `dims` dims, in steps of 8. Rows past
/// the last dim are read to the end of their step. The next dim's factors are under way while one
/// is multiplied.
template <int q_pitch, int k_pitch>
__device__ __forceinline__ void add_scores(const float* q_from, const float* k_from, int dims,
                                           float (&s)[lane_rows][lane_columns]) {
  constexpr int step = 8;
  float q[2][lane_rows], k[2][lane_columns];
  const auto load = [&](int d) {
    load_groups(q_from + d * q_pitch, 16, q[d % 2]);
    load_groups(k_from + d * k_pitch, 32, k[d % 2]);
  };
  load(0);
#pragma unroll 1
  for (; dims > 0; dims -= step) {
#pragma unroll
    for (int d = 0; d < step; ++d) {
      if (d + 1 < step || dims > step) load(d + 1);
      add_outer(s, q[d % 2], k[d % 2]);
    }
    q_from += step * q_pitch;
    k_from += step * k_pitch;
  }
}

/// The weights of 32 rows on their way from the product that made them to the one that uses them:
/// P^T [keys][32] in shared memory, the 16-byte groups of a key turned so that neither the eight
/// lanes that store at once nor those that load meet in a bank.
class TurnedWeights {
 public:
  __device__ TurnedWeights(float* tile, const WideLane& lane) : tile_(tile), lane_(lane) {}

  /// Keys first_key + lane.column(j); first_key is a multiple of 64.
  __device__ void store(const float (&p)[lane_rows][lane_columns], int first_key) const {
    const int turn = turn_of(4 * lane_.tx);
#pragma unroll
    for (int j = 0; j < lane_columns; ++j) {
      float* const key = tile_ + (first_key + lane_.column(j)) * warp_rows;
#pragma unroll
      for (int i = 0; i < lane_rows; i += 4) {
        store4(key + (lane_.row(i) ^ turn), p[i][j], p[i + 1][j], p[i + 2][j], p[i + 3][j]);
      }
    }
  }

  /// The lane's rows of any key.
  __device__ void load(int key, float (&p)[lane_rows]) const {
    const float* const from = tile_ + key * warp_rows;
#pragma unroll
    for (int i = 0; i < lane_rows; i += 4)
      unpack(load4(from + (lane_.row(i) ^ turn_of(key))), p + i);
  }

  /// Sixteen keys at a time, for loops over them: only the turn's last bit differs between the
  /// groups, the rest is known to the compiler.
  struct Sixteen {
    const float* keys;
    int place;

    /// 0 <= k <= 16: the first of the next sixteen is within reach.
    __device__ void load(int k, float (&p)[lane_rows]) const {
      const int here = k < 16 ? place : place ^ 4;
      const float* const from = keys + k * warp_rows + (here ^ (k / 4 % 2 * 8));
      const int half = k / 8 % 2 * 16;
      unpack(load4(from + half), p);
      unpack(load4(from + (16 - half)), p + 4);
    }
    __device__ void advance() {
      keys += 16 * warp_rows;
      place ^= 4;
    }
  };
  /// `key` is a multiple of 16.
  __device__ Sixteen sixteen(int key) const {
    return {tile_ + key * warp_rows, (4 * lane_.ty) ^ (key / 16 % 2 * 4)};
  }

 private:
  /// Turn of a key's row, in floats. Bits 2, 3, 4 of the key move to bits 3, 4, 2: storing lanes
  /// differ in the first two of them and in ty's lower bit, which is bit 2 of the place.
  static __device__ int turn_of(int key) {
    return (key << 1 & 24) ^ (key >> 2 & 4);
  }

  float* tile_;
  WideLane lane_;
};

/// o += the lane's rows of P times its columns of V over `keys` keys, a multiple of 16 that is not
/// 0; the next key's factors are under way while one is multiplied.
template <int v_pitch, int columns>
__device__ __forceinline__ void add_values(TurnedWeights::Sixteen p_from, const float* v_from,
                                           int keys, float (&o)[lane_rows][columns]) {
  float p[2][lane_rows], v[2][columns];
  const auto load = [&](int k) {
    p_from.load(k, p[k % 2]);
    load_groups(v_from + k * v_pitch, 32, v[k % 2]);
  };
  load(0);
#pragma unroll 1
  for (; keys > 0; keys -= 16) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      if (k + 1 < 16 || keys > 16) load(k + 1);
      add_outer(o, p[k % 2], v[k % 2]);
    }
    p_from.advance();
    v_from += 16 * v_pitch;
  }
}

/// A row of O, the lane's columns from `column` on in groups 32 apart, divided by `divisor`;
/// columns from head_dim on do not exist. `wide`: all groups are whole and aligned.
template <int columns>
__device__ void store_groups(const float (&o)[columns], float divisor, float* row, int column,
                             int head_dim, bool wide) {
#pragma unroll
  for (int g = 0; g < columns; g += 4, column += 32) {
    const float four[4] = {o[g] / divisor, o[g + 1] / divisor, o[g + 2] / divisor,
                           o[g + 3] / divisor};
    if (wide) {
      if (column < head_dim) store4(row + column, four[0], four[1], four[2], four[3]);
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (column + e < head_dim) row[column + e] = four[e];
      }
    }
  }
}

}  // namespace attest
