#pragma once

// The launch before all others where dQ is summed in units: how large keys and values are.

#include "gpu/kernels/bwd_wgmma/around.cuh"

namespace attest {

/// A block for each 64 keys of a KV head. D / 8 lanes share a key. Keys that are hidden from all
/// rows have no size.
template <Executor home, typename T, int D>
__global__ void __launch_bounds__(bwd_prepare_threads)
    bwd_key_sizes(BackwardArguments a, BwdSums sums) {
  let_successor_begin();
  const auto number = static_cast<int>(blockIdx.x), kv_heads = static_cast<int>(a.problem.kv_heads);
  const int plane = number / sums.key_blocks, head = plane % kv_heads;
  const int first_key = number % sums.key_blocks * bwd_key_block;
  const int request = plane / kv_heads;
  int entry = request, first_row = 0, keys = static_cast<int>(a.problem.key_len);
  if (a.key_starts != nullptr) {
    first_row = a.key_starts[entry];
    keys = a.key_starts[entry + 1] - first_row;
    entry = 0;
  }
  if (first_key >= keys) return;
  const auto thread = static_cast<int>(threadIdx.x);
  constexpr int lanes = D / 8, keys_at_once = bwd_prepare_threads / lanes;
  const int column = 8 * (thread % lanes);
  auto* const sizes = dynamic_shared<float2>();
#pragma unroll
  for (int i = 0; i < bwd_key_block; i += keys_at_once) {
    const int key = i + thread / lanes;
    float2 most{0.0F, 0.0F};
    const bool is_seen =
        first_key + key < keys &&
        (a.key_mask == nullptr || a.key_mask[request * a.problem.key_len + first_key + key] != 0);
    if (is_seen) {
      float k[8], v[8];
      const int row = first_row + first_key + key;
      load_eight(k, static_cast<const T*>(a.k) + a.k_strides.offset(entry, head, row), column,
                 static_cast<int>(a.problem.head_dim));
      load_eight(v, static_cast<const T*>(a.v) + a.v_strides.offset(entry, head, row), column,
                 static_cast<int>(a.problem.output_dim()));
#pragma unroll
      for (int e = 0; e < 8; ++e) most = larger_or_nan(most, {fabsf(k[e]), fabsf(v[e])});
    }
    most = largest_of_lanes<lanes>(most);
    if (thread % lanes == 0) {
      sizes[key] = most;
      sums.key_sizes[std::int64_t{number} * bwd_key_block + key] = most;
    }
  }
  __syncthreads();
  if (thread >= 32) return;
  const float2 most = largest_of_lanes<32>(larger_or_nan(sizes[thread], sizes[thread + 32]));
  if (thread == 0) sums.block_sizes[number] = most;
}

}  // namespace attest
