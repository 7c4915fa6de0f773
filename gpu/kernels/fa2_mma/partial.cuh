#pragma once

// Keys of a row split over several blocks: what each leaves in the workspace, and the sum of it.
//
//   of split p    acc = sum of weights 2^(c s - r_p) times V, l_p = sum of weights, both fp32
//   merged        R = max r_p, w_p = 2^(r_p - R):  O = sum w_p acc_p / sum w_p l_p,
//                 LSE = R ln 2 + ln sum w_p l_p
//
// A split that sees no keys leaves zeros and r_p = -FLT_MAX, and adds exactly nothing. Splits are
// added in their order: two launches give the same bits.

#include <cfloat>
#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/fa2_mma/shape.cuh"
#include "gpu/kernels/fa2_mma/work.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// Workspace [splits, rows, columns + 2] of fp32: acc, then r and l. Rows are those of full
/// lengths, [batch, query_heads, query_len].
struct Fa2Partials {
  float* first;
  std::int64_t rows, columns;

  __device__ explicit Fa2Partials(const ForwardArguments& a)
      : first(static_cast<float*>(a.workspace)),
        rows(a.problem.rows()),
        columns(a.problem.output_dim()) {}
  __device__ float* row(std::int64_t split, std::int64_t n) const {
    return first + (split * rows + n) * (columns + 2);
  }
  static std::size_t bytes(const Problem& problem, const Plan& plan) {
    return static_cast<std::size_t>(plan.key_splits * problem.rows() * (problem.output_dim() + 2)) *
           sizeof(float);
  }
};

/// Writes a warp's rows of a split; `first_row` is the warp's.
template <typename Shape, typename Work>
__device__ __forceinline__ void store_partial(const Fa2Partials& to, std::int64_t split,
                                              const Work& work, int first_row,
                                              const typename Shape::Outputs& o,
                                              const typename Shape::Rows& r,
                                              const typename Shape::Rows& sum) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < Shape::row_tiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + 16 * i + 8 * h + g;
      if (row >= work.rows) continue;
      float* const target = to.row(split, work.dense_row_of(row));
#pragma unroll
      for (int n = 0; n < Shape::D / 8; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = 8 * n + 2 * t + e;
          if (column < to.columns) target[column] = o[i][n][2 * h + e];
        }
      }
      if (t == 0) {
        target[to.columns] = r[i][h];
        target[to.columns + 1] = sum[i][h];
      }
    }
  }
}

/// One warp a row of full lengths; rows past an entry's length do nothing.
template <Executor home, typename T>
__global__ void __launch_bounds__(128) combine_splits(ForwardArguments a) {
  const Problem& problem = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t n = std::int64_t{blockIdx.x} * 4 + threadIdx.x / 32;
  const Fa2Partials partials(a);
  if (n >= partials.rows) return;
  ForwardArguments unpacked = a;
  unpacked.plan.pack_gqa = 0;
  const Fa2GeneralWork<T> work(unpacked, static_cast<int>(n / problem.query_len));
  const int row = static_cast<int>(n % problem.query_len);
  if (row >= work.rows) return;
  const auto splits = static_cast<int>(a.plan.key_splits);

  float top = -FLT_MAX;
  for (int p = 0; p < splits; ++p) top = fmaxf(top, partials.row(p, n)[partials.columns]);
  float l = 0.0F;
  for (int p = 0; p < splits; ++p) {
    const float* const from = partials.row(p, n) + partials.columns;
    l = fmaf(HardwareExp2::of(from[0] - top), from[1], l);
  }
  const float factor = 1.0F / divisor_of(l);
  for (int column = lane; column < partials.columns; column += 32) {
    float sum = 0.0F;
    for (int p = 0; p < splits; ++p) {
      const float* const from = partials.row(p, n);
      sum = fmaf(HardwareExp2::of(from[partials.columns] - top), from[column], sum);
    }
    work.o.row(row)[column] = T(sum * factor);
  }
  if (lane == 0) work.lse_of(row) = log_sum_exp2(top, l);
}

}  // namespace attest
