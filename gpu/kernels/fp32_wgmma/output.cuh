#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/kernels/fp32_wgmma/parameters.cuh"
#include "gpu/kernels/fp32_wgmma/scaling.cuh"

namespace attest {

// Which rows fp16 parts leave to bf16 parts: the rules are in the README. A row is judged by what
// it sees and by nothing else.

/// True if a row has no fp16 parts because of these keys, of which it sees the first `seen`.
/// `reach` is that of its RowScale.
__device__ inline bool refuses(const KeyScale& scale, int seen, float reach) {
  return scale.first_refused < min(seen, split_rows) ||
         (scale.first_sized < seen && !(reach * scale.k_size <= 1.0F));
}

/// True if a row has no fp16 parts, once all its keys are weighed. `reach` is infinite where
/// refuses() was true; l is the sum of its weights, the largest of which is 2^weight_lead.
__device__ inline bool is_refused(float reach, int past, float l) {
  return !(reach < INFINITY) || (past > 0 && past <= few_keys) ||
         (past > 0 && !(l >= (1 + one_key_share) * power_of(weight_lead)));
}

/// Flags the rows that fp16 parts leave to bf16 parts, and does not let them be written. All lanes
/// of a warp call it, for its 16 rows.
__device__ __forceinline__ void flag_refused(const SplitProblem& p, int head, int warp_row,
                                             const bool (&refused)[2], bool (&writes)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  RowFlags& flags = p.flags_of(head, warp_row);
  const unsigned low = __ballot_sync(0xffffffffU, refused[0]);
  const unsigned high = __ballot_sync(0xffffffffU, refused[1]);
  if (lane == 0) flags = {low, high};
  writes[0] &= !refused[0];
  writes[1] &= !refused[1];
}

/// Writes row `row` of O and its LSE. Its four lanes call it; each has, of O as wgmma leaves it,
/// the columns 8 j + 2 t and 8 j + 2 t + 1 of rows g (h = 0) and g + 8 (h = 1): o[4 j + 2 h] and
/// the next.
template <int registers>
__device__ __forceinline__ void store_row(const SplitProblem& p, int head, int row, int h,
                                          const float (&o)[registers], float lse) {
  const int t = static_cast<int>(threadIdx.x) % 4;
  if (t == 0) p.lse[static_cast<std::int64_t>(head) * p.queries + row] = lse;
  float* const to = p.o + p.o_strides.offset(head / p.entry_heads, head % p.entry_heads, row);
  const bool is_wide = reinterpret_cast<std::uintptr_t>(to) % 8 == 0 && p.columns % 2 == 0;
#pragma unroll
  for (int j = 0; j < registers / 4; ++j) {
    const int column = 8 * j + 2 * t;
    if (column >= p.columns) continue;
    if (is_wide) {
      *reinterpret_cast<float2*>(to + column) = make_float2(o[4 * j + 2 * h], o[4 * j + 2 * h + 1]);
    } else {
      to[column] = o[4 * j + 2 * h];
      if (column + 1 < p.columns) to[column + 1] = o[4 * j + 2 * h + 1];
    }
  }
}

}  // namespace attest
