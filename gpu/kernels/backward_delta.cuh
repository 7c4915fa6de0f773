#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "gpu/kernels/backward_entry.cuh"
#include "gpu/kernels/backward_workspace.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

inline constexpr int delta_warps = 4;

/// A warp a row: a lane sums every 32nd column of dO O, then the lanes meet, and dLSE is taken from
/// their sum. A row that sees no key
/// has LSE -inf; it gets +inf, so that whatever its scores are, 2^(s - LSE) is 0, and a delta of 0,
/// whatever its dLSE is.
template <Executor home, typename T>
__global__ void backward_delta(BackwardArguments a) {
  const Problem& problem = a.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t n = blockIdx.x * static_cast<std::int64_t>(delta_warps) + warp;
  if (n >= problem.rows()) return;
  const std::int64_t head = n / problem.query_len % problem.query_heads;
  const std::int64_t entry_index = n / problem.query_len / problem.query_heads;
  const auto row = static_cast<int>(n % problem.query_len);
  const BackwardEntry entry(a, entry_index);
  if (row >= entry.rows) return;

  const T* const o = entry.row_view<const T>(a.o, a.o_strides, head).row(row);
  const T* const d_o = entry.row_view<const T>(a.d_o, a.do_strides, head).row(row);
  float sum = 0.0F;
  for (std::int64_t c = lane; c < problem.output_dim(); c += 32) {
    sum = fmaf(to_float(d_o[c]), to_float(o[c]), sum);
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  }
  if (lane != 0) return;
  const std::int64_t at = entry.first_lse(problem, head) + row;
  const float lse = a.lse[at];
  const bool is_empty = lse == -INFINITY;
  const RowTerms terms(a, entry_index, head);
  terms.lse2[row] = is_empty ? INFINITY : lse * std::numbers::log2e_v<float>;
  if (a.d_lse != nullptr) sum -= a.d_lse[at];
  terms.delta[row] = is_empty ? 0.0F : sum;
}

/// Additions that a term of delta passes through at the most (BackwardRoundings::delta_chain).
inline std::int64_t delta_additions(const Problem& problem) {
  return (problem.output_dim() + 31) / 32 + 5;
}

template <Executor home, typename T>
void launch_delta(const BackwardArguments& a, Device& device) {
  const std::int64_t blocks = (a.problem.rows() + delta_warps - 1) / delta_warps;
  if (blocks == 0) return;
  launch(backward_delta<home, T>, dim3(static_cast<unsigned>(blocks)), dim3(32 * delta_warps), 0,
         device, a);
}

}  // namespace attest
