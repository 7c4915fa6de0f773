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
  __device__ __forceinline__ MlaOutput(const MlaParameters& p, const MlaShared<Shape>& shared,
                                       const MlaWork& work)
      : p_(p), shared_(shared), work_(work) {}

  __device__ __forceinline__ void store(const float (&o)[Shape::group_columns / 2],
                                        const float (&r)[2], const float (&l)[2]) const {
    if (work_.unit.of.all_chunks() > 1) {
      leave(o, r, l);
      return;
    }
    const float factor[2] = {1.0F / divisor_of(l[0]), 1.0F / divisor_of(l[1])};
    put_in_order(o, factor);
    __syncwarp();
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
    return static_cast<int>(thread_asked_anew() & 31U);
  }
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(thread_asked_anew() >> 5 & 3U);
  }
  static __device__ __forceinline__ int row() {
    return 16 * warp() + lane() / 4;
  }
  __device__ __forceinline__ DecodeRow<T> row_at(int row) const {
    return DecodeRow<T>(p_.a, p_.sizes, work_.unit, work_.first_row + row);
  }

  /// Stores the chunk's part, as it lies in registers.
  __device__ __forceinline__ void leave(const float (&o)[Shape::group_columns / 2],
                                        const float (&r)[2], const float (&l)[2]) const {
    const auto partials = DecodePartials<Shape::columns>::of(p_.a, p_.sizes);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row() + 8 * h >= work_.rows) continue;
      const std::int64_t number = row_at(row() + 8 * h).number;
      float* const to = partials.acc_of(work_.unit.chunk, number) + group * Shape::group_columns +
                        2 * (lane() % 4);
#pragma unroll
      for (int j = 0; j < Shape::group_columns / 8; ++j) {
        *reinterpret_cast<float2*>(to + 8 * j) = {o[4 * j + 2 * h], o[4 * j + 2 * h + 1]};
      }
      if (group == 0 && lane() % 4 == 0) {
        *partials.sums_of(work_.unit.chunk, number) = {r[h], l[h]};
      }
    }
  }

  /// Each warp puts its 16 rows in order where its group's panels of Q were.
  __device__ __forceinline__ void put_in_order(const float (&o)[Shape::group_columns / 2],
                                               const float (&factor)[2]) const {
    const auto pair = [&](int i, int h) {
      return packed<T>(o[4 * i + 2 * h] * factor[h], o[4 * i + 2 * h + 1] * factor[h]);
    };
#pragma unroll
    for (int i = 0; i < Shape::group_columns / 8; i += 2) {
      const unsigned pairs[4] = {pair(i, 0), pair(i, 1), pair(i + 1, 0), pair(i + 1, 1)};
      store_matrices(shared_.q_panel(Shape::first_panel(group) + i / 8) +
                         swizzled_chunk(16 * warp() + lane() % 16, i % 8 + lane() / 16),
                     pairs);
    }
  }
  /// Writes them, a row at a time.
  __device__ __forceinline__ void store_lines() const {
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
      const int row = 16 * warp() + i;
      const uint4 x = load_16_bytes(shared_.q_panel(Shape::first_panel(group) + lane() / 8) +
                                    swizzled_chunk(row, lane() % 8));
      if (row >= work_.rows) break;
      *reinterpret_cast<uint4*>(row_at(row).o + group * Shape::group_columns + 8 * lane()) = x;
    }
  }

  const MlaParameters& p_;
  const MlaShared<Shape>& shared_;
  const MlaWork& work_;
};

}  // namespace attest
