#pragma once

#include "gpu/kernels/decode_mma/merge.cuh"
#include "gpu/kernels/mla_wgmma/work.cuh"
#include "gpu/primitives/mma.cuh"

namespace attest {

/// Writes what a warpgroup has of a unit: half of the columns of O, or of the partial results of
/// the unit's chunk. The first group writes LSE as well, or the sums.
template <typename Shape, int group>
class MlaOutput {
  using T = typename Shape::T;

 public:
  /// `staging`: four panels in shared memory that the group may write to, if the unit has a tile.
  __device__ __forceinline__ MlaOutput(const MlaParameters& p, SharedAddress staging,
                                       const MlaWork& work)
      : p_(p), staging_(staging), work_(work) {}

  /// `o`: float[128], or in two parts.
  template <typename O>
  __device__ __forceinline__ void store(const O& o, const float (&r)[2],
                                        const float (&l)[2]) const {
    if (work_.unit.of.all_chunks() > 1) {
      leave(o, r, l);
      return;
    }
    const float factor[2] = {1.0F / divisor_of(l[0]), 1.0F / divisor_of(l[1])};
    if (work_.tiles > 0) {
      put_in_order(o, factor);
      __syncwarp();
    }
    store_lines();
    if constexpr (group == 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (lane() % 4 != 0 || row() + 8 * h >= work_.rows) continue;
        *row_at(row() + 8 * h).lse = log_sum_exp2(r[h], l[h]);
      }
    }
  }

 private:
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(thread() & 31U);
  }
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(thread() >> 5 & 3U);
  }
  template <int n>
  static __device__ __forceinline__ float at(const float (&o)[n], int i) {
    return o[i];
  }
  template <int n>
  static __device__ __forceinline__ float at(const float (&o)[2][n], int i) {
    return o[i / n][i % n];
  }
  /// Asked anew every time: what follows from it would fill registers throughout the loop over key
  /// tiles.
  static __device__ __forceinline__ unsigned thread() {
    unsigned thread = threadIdx.x;
#ifdef __CUDACC__
    asm volatile("" : "+r"(thread));
#endif
    return thread;
  }
  static __device__ __forceinline__ int row() {
    return 16 * warp() + lane() / 4;
  }
  __device__ __forceinline__ DecodeRow<T> row_at(int row) const {
    return DecodeRow<T>(p_.a, p_.sizes, work_.unit, work_.first_row + row);
  }

  /// What the chunk has, as it lies in registers.
  template <typename O>
  __device__ __forceinline__ void leave(const O& o, const float (&r)[2],
                                        const float (&l)[2]) const {
    const auto partials = DecodePartials<Shape::columns>::of(p_.a, p_.sizes);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row() + 8 * h >= work_.rows) continue;
      const std::int64_t number = row_at(row() + 8 * h).number;
      float* const to = partials.acc_of(work_.unit.chunk, number) + group * Shape::group_columns +
                        2 * (lane() % 4);
#pragma unroll
      for (int j = 0; j < Shape::group_columns / 8; ++j) {
        *reinterpret_cast<float2*>(to + 8 * j) = {at(o, 4 * j + 2 * h), at(o, 4 * j + 2 * h + 1)};
      }
      if (group == 0 && lane() % 4 == 0) {
        *partials.sums_of(work_.unit.chunk, number) = {r[h], l[h]};
      }
    }
  }

  /// Each warp puts its 16 rows in order.
  template <typename O>
  __device__ __forceinline__ void put_in_order(const O& o, const float (&factor)[2]) const {
    const auto pair = [&](int i, int h) {
      return packed<T>(at(o, 4 * i + 2 * h) * factor[h], at(o, 4 * i + 2 * h + 1) * factor[h]);
    };
#pragma unroll
    for (int i = 0; i < Shape::group_columns / 8; i += 2) {
      const unsigned pairs[4] = {pair(i, 0), pair(i, 1), pair(i + 1, 0), pair(i + 1, 1)};
      store_matrices(staging_ + (i / 8 * Shape::panel_bytes +
                                 swizzled_chunk(16 * warp() + lane() % 16, i % 8 + lane() / 16)),
                     pairs);
    }
  }
  /// Writes them, or zeros where the unit has no tile, a row at a time.
  __device__ __forceinline__ void store_lines() const {
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
      const int row = 16 * warp() + i;
      if (row >= work_.rows) break;
      uint4 x{0, 0, 0, 0};
      if (work_.tiles > 0) {
        x = load_16_bytes(staging_ +
                          (lane() / 8 * Shape::panel_bytes + swizzled_chunk(row, lane() % 8)));
      }
      *reinterpret_cast<uint4*>(row_at(row).o + group * Shape::group_columns + 8 * lane()) = x;
    }
  }

  const MlaParameters& p_;
  const SharedAddress staging_;
  const MlaWork& work_;
};

}  // namespace attest
