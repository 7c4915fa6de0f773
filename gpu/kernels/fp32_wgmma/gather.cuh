#pragma once

// Rows that bf16 parts serve lie anywhere among the others. Their queries are gathered: the parts
// of the n-th such row of a head are row n of the parts of Q, so that the second pass has as many
// tiles as the rows fill. Rows keep their order; under a causal mask a tile's last sees most keys.

#include "gpu/kernels/fp32_wgmma/parameters.cuh"

namespace attest {

/// Rows of a head that a kernel of these parts multiplies.
template <typename Parts>
__device__ __forceinline__ int rows_of(const SplitProblem& p, int head) {
  if constexpr (Parts::is_scaled)
    return p.queries;
  else
    return p.served[head];
}

/// The query row that is the `place`-th of them.
template <typename Parts>
__device__ __forceinline__ int row_at(const SplitProblem& p, int head, int place) {
  if constexpr (Parts::is_scaled)
    return place;
  else
    return p.served_rows[static_cast<std::int64_t>(head) * p.queries + place];
}

/// Flags of the rows that bf16 parts serve, from `row` on, a multiple of flag_rows.
__device__ inline RowFlags served_from(const SplitProblem& p, int head, int row) {
  if (row >= p.queries) return {0, 0};
  return p.refuses_all ? RowFlags::of_first(min(flag_rows, p.queries - row))
                       : p.flags_of(head, row);
}

/// Number of rows below `row`, a multiple of flag_rows, that bf16 parts serve. All threads of the
/// block call it.
__device__ inline int served_before(const SplitProblem& p, int head, int row) {
  __shared__ int sums[split_threads / 32];
  const int thread = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int i = thread; i < row / flag_rows; i += split_threads)
    sum += served_from(p, head, i * flag_rows).count();
  sum = __reduce_add_sync(0xffffffffU, sum);
  if (thread % 32 == 0) sums[thread / 32] = sum;
  __syncthreads();
  sum = 0;
  for (const int of_warp : sums) sum += of_warp;
  return sum;
}

/// Facts about the split_rows rows of a block, for the thread's row of them.
struct GatheredRows {
  int before = 0;  ///< rows of the block below this one that bf16 parts serve
  int count = 0;   ///< rows of the block that they serve
  bool is_served = false;

  __device__ GatheredRows(const SplitProblem& p, int head, int block, int within) {
#pragma unroll
    for (int i = 0; i < split_rows / flag_rows; ++i) {
      const RowFlags flags = served_from(p, head, block * split_rows + i * flag_rows);
      if (within / flag_rows == i) {
        before = count + flags.count_below(within % flag_rows);
        is_served = flags.has(within % flag_rows);
      }
      count += flags.count();
    }
  }
};

/// True if a row that bf16 parts serve sees one of these keys. All threads of the block call it.
__device__ inline bool are_keys_served(const SplitProblem& p, int kv_head, int block) {
  if (p.refuses_all) return true;
  const int group = p.entry_heads / p.entry_kv_heads;
  const int first_head =
      kv_head / p.entry_kv_heads * p.entry_heads + kv_head % p.entry_kv_heads * group;
  bool any = false;
  for (int head = first_head; head < first_head + group; ++head) {
    for (int i = static_cast<int>(threadIdx.x); i < p.flags_of_head(); i += split_threads) {
      const int last_row = min((i + 1) * flag_rows, p.queries) - 1;
      any |=
          p.flags_of(head, i * flag_rows).count() != 0 && block * split_rows < p.past_key(last_row);
    }
  }
  return __syncthreads_or(any ? 1 : 0) != 0;
}

}  // namespace attest
