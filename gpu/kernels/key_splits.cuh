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
#include "gpu/kernels/head_work.cuh"
#include "gpu/kernels/row_fragment.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// Partial results in the workspace: [splits, rows, columns + 2] of fp32, acc, then r and l. Rows
/// are those of full lengths, [batch, query_heads, query_len].
template <typename Columns = std::int64_t>
struct PartialResults {
  float* first;
  std::int64_t rows;
  Columns columns;  ///< in as many bits as the kernel counts them in

  static __device__ PartialResults of(const ForwardArguments& a) {
    return {static_cast<float*>(a.workspace), a.problem.rows(), a.problem.output_dim()};
  }

  __device__ __forceinline__ float* row(std::int64_t split, std::int64_t n) const {
    return first + (split * rows + n) * (columns + 2);
  }
  /// Writes row h of a fragment of acc, and its r and l; lane t of the row's four calls.
  template <typename Fragment>
  __device__ __forceinline__ void store(float* to, int t, const Fragment& acc, int h, float r,
                                        float l) const {
#pragma unroll
    for (int j = 0; j < column_groups<Fragment>; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = 8 * j + 2 * t + e;
        if (column < columns) to[column] = element(acc, j, h, e);
      }
    }
    if (t == 0) {
      to[columns] = r;
      to[columns + 1] = l;
    }
  }
  /// Writes the row of a split that sees none of its keys; lane t of the row's four calls.
  __device__ __forceinline__ void store_nothing(float* to, int t) const {
    for (int column = t; column < columns; column += 4) to[column] = 0.0F;
    if (t == 0) {
      to[columns] = -FLT_MAX;
      to[columns + 1] = 0.0F;
    }
  }
};

/// Size of the workspace that partial results take.
inline std::size_t partial_result_bytes(const Problem& problem, const Plan& plan) {
  return static_cast<std::size_t>(plan.key_splits * problem.rows() * (problem.output_dim() + 2)) *
         sizeof(float);
}

/// Merges the partial results of rows, one warp a row. Rows are numbered as with full lengths;
/// those past an entry's length do nothing.
template <Executor home, typename T>
__global__ void __launch_bounds__(128) combine_splits(ForwardArguments a) {
  const Problem& problem = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t n = std::int64_t{blockIdx.x} * 4 + threadIdx.x / 32;
  const auto partials = PartialResults<>::of(a);
  if (n >= partials.rows) return;
  ForwardArguments unpacked = a;
  unpacked.plan.pack_gqa = 0;
  const GeneralWork<T> work(unpacked, static_cast<int>(n / problem.query_len));
  const int row = static_cast<int>(n % problem.query_len);
  if (row >= work.rows) return;
  const auto splits = static_cast<int>(a.plan.key_splits);

  // Each lane asks for the r and l of a split of its own, so that a row of many splits waits once
  // for all of them. Sums are in the splits' order all the same.
  const auto reference_of = [&](int p) {
    return p < splits ? partials.row(p, n)[partials.columns] : -FLT_MAX;
  };
  float top = -FLT_MAX;
  for (int p = lane; p < splits; p += 32) top = fmaxf(top, reference_of(p));
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, distance));
  }
  float l = 0.0F;
  for (int first = 0; first < splits; first += 32) {
    const int p = first + lane;
    const float weight = HardwareExp2::of(reference_of(p) - top);
    const float sum = p < splits ? partials.row(p, n)[partials.columns + 1] : 0.0F;
    for (int i = 0; i < min(32, splits - first); ++i) {
      l = fmaf(__shfl_sync(0xffffffffU, weight, i), __shfl_sync(0xffffffffU, sum, i), l);
    }
  }
  const float factor = 1.0F / divisor_of(l);
  for (std::int64_t column = lane; column - lane < partials.columns; column += 32) {
    const bool has_column = column < partials.columns;
    float sum = 0.0F;
    for (int first = 0; first < splits; first += 32) {
      const float weight = HardwareExp2::of(reference_of(first + lane) - top);
#pragma unroll 8
      for (int i = 0; i < min(32, splits - first); ++i) {
        const float part = has_column ? partials.row(first + i, n)[column] : 0.0F;
        sum = fmaf(__shfl_sync(0xffffffffU, weight, i), part, sum);
      }
    }
    if (has_column) work.o.row(row)[column] = T(sum * factor);
  }
  if (lane == 0) work.lse_of(row) = log_sum_exp2(top, l);
}

/// Launches combine_splits() for all rows of a problem in fp16 or bf16.
template <Executor home>
void launch_combine_splits(const ForwardArguments& a, Device& device) {
  const auto blocks = static_cast<unsigned>(ceil_div(a.problem.rows(), 4));
  const auto combine =
      with_sixteen_bits(a.problem.element_type,
                        []<typename T>(std::type_identity<T>) { return combine_splits<home, T>; });
  launch(combine, dim3(blocks), dim3(128), 0, device, a);
}

}  // namespace attest
