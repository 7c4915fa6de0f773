#pragma once

// From fp32 to parts: one block reads split_rows rows of Q, or as many keys of K and V.

#include <cstdint>

#include "gpu/kernels/fp32_wgmma/gather.cuh"
#include "gpu/kernels/fp32_wgmma/parameters.cuh"
#include "gpu/kernels/fp32_wgmma/parts.cuh"
#include "gpu/kernels/fp32_wgmma/scaling.cuh"

namespace attest {

inline constexpr float fp16_max = 65504.0F;

/// A thread's quarter of a row: 16-byte chunks n, n + 4, ... of D columns.
template <int D>
struct SplitRow {
  static constexpr int chunks = D / 16;
  float x[chunks][4];

  /// Zeros past the row's columns and where the row does not exist.
  __device__ __forceinline__ void load(const float* row, bool exists, int columns, bool is_wide) {
    const int quarter = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      const int column = 4 * (quarter + 4 * i);
      if (exists && is_wide && column < columns) {
        const float4 four = *reinterpret_cast<const float4*>(row + column);
        x[i][0] = four.x, x[i][1] = four.y, x[i][2] = four.z, x[i][3] = four.w;
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
          x[i][e] = exists && column + e < columns ? row[column + e] : 0.0F;
      }
    }
  }
  template <typename Of, typename Join>
  __device__ __forceinline__ float over_row(const Of& of, const Join& join) const {
    float all = 0.0F;
#pragma unroll
    for (int i = 0; i < chunks; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) all = join(all, of(x[i][e]));
    all = join(all, __shfl_xor_sync(0xffffffffU, all, 1));
    return join(all, __shfl_xor_sync(0xffffffffU, all, 2));
  }
  /// NaN or infinite where an element is.
  __device__ __forceinline__ float largest() const {
    return over_row([](float a) { return fabsf(a); },
                    [](float a, float b) { return a > b || a != a ? a : b; });
  }

  /// Writes the parts of scale * x to row `row` of every tensor of parts, `part_stride` apart, and
  /// returns how much the parts of numbers below 2^-2 leave out.
  template <typename Parts>
  __device__ __forceinline__ float store(typename Parts::T* row, std::int64_t part_stride,
                                         float scale) const {
    const int quarter = static_cast<int>(threadIdx.x) % 4;
    float left_out = 0.0F;
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      unsigned low[Parts::count], high[Parts::count];
      Parts::split(scale * x[i][0], scale * x[i][1], low);
      Parts::split(scale * x[i][2], scale * x[i][3], high);
#pragma unroll
      for (int part = 0; part < Parts::count; ++part) {
        *reinterpret_cast<uint2*>(row + part * part_stride + 4 * (quarter + 4 * i)) =
            make_uint2(low[part], high[part]);
      }
      if constexpr (Parts::is_scaled) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float y = scale * x[i][e];
          if (fabsf(y) < 0.25F) {
            const float hi = __half2float(__float2half_rn(y));
            left_out += fabsf(y - hi - __half2float(__float2half_rn(y - hi)));
          }
        }
      }
    }
    return left_out;
  }
};

/// Access to the queries of a head, and to their parts.
template <typename Parts, int D>
struct QueryParts {
  const SplitProblem& p;
  int head;

  __device__ __forceinline__ SplitRow<D> load(int n, bool exists) const {
    const float* const from =
        p.q_in + p.q_strides.offset(head / p.entry_heads, head % p.entry_heads, n);
    SplitRow<D> row;
    const bool is_wide = (reinterpret_cast<std::uintptr_t>(from) & 15) == 0 && p.columns % 4 == 0;
    row.load(from, exists, p.columns, is_wide);
    return row;
  }
  /// Writes row `place` of the parts; returns what SplitRow::store() does.
  __device__ __forceinline__ float store(const SplitRow<D>& row, int place, float scale) const {
    auto* const to = static_cast<typename Parts::T*>(p.q_parts) +
                     (static_cast<std::int64_t>(head) * p.queries + place) * D;
    return row.template store<Parts>(to, static_cast<std::int64_t>(p.heads) * p.queries * D,
                                     p.is_negative ? -scale : scale);
  }
};

template <typename Parts, int D>
__device__ __forceinline__ void split_queries(const SplitProblem& p, int head, int block) {
  const QueryParts<Parts, D> parts{p, head};
  const int n = block * split_rows + static_cast<int>(threadIdx.x) / 4;
  const bool exists = n < p.queries;
  SplitRow<D> row = parts.load(n, exists);
  const float largest = row.largest();
  const bool is_held = largest == 0.0F || (largest >= least_size && largest <= largest_size);
  const float scale = !is_held ? 0.0F : largest > 0.0F ? power_to(query_exponent, largest) : 1.0F;
  const float sum =
      row.over_row([](float a) { return fabsf(a); }, [](float a, float b) { return a + b; });
  if (!is_held) row = parts.load(n, false);
  float left_out = exists ? parts.store(row, n, scale) : 0.0F;
  left_out += __shfl_xor_sync(0xffffffffU, left_out, 1);
  left_out += __shfl_xor_sync(0xffffffffU, left_out, 2);
  if (exists && threadIdx.x % 4 == 0) {
    const float factor = is_held ? inverse_power(scale) : 1.0F;
    // In units of k_size: by how much elements of K may err, and how large they may be.
    const float error =
        sum * power_of(-25 - key_exponent) + left_out * factor * power_of(16 - key_exponent);
    p.rows[static_cast<std::int64_t>(head) * p.queries + n] = {
        factor, is_held ? p.scale * error * (1 / allowed_score_error) : INFINITY};
  }
}

/// Splits those of the rows that bf16 parts serve, and moves them together. The last block of a
/// head says how many there are, and fills their last tile with zeros: it is read as a whole.
template <typename Parts, int D>
__device__ __forceinline__ void gather_queries(const SplitProblem& p, int head, int block) {
  const QueryParts<Parts, D> parts{p, head};
  const int within = static_cast<int>(threadIdx.x) / 4, n = block * split_rows + within;
  const bool is_last = (block + 1) * split_rows >= p.queries;
  const GatheredRows rows(p, head, block, within);
  if (rows.count == 0 && !is_last) return;
  const int first = served_before(p, head, block * split_rows), end = first + rows.count;
  if (rows.is_served) {
    const int place = first + rows.before;
    (void)parts.store(parts.load(n, true), place, 1.0F);
    if (threadIdx.x % 4 == 0)
      p.served_rows[static_cast<std::int64_t>(head) * p.queries + place] = n;
  }
  if (!is_last) return;
  if (threadIdx.x == 0) p.served[head] = end;
  const int tile_end = min((end + bf16_tile_rows - 1) / bf16_tile_rows * bf16_tile_rows, p.queries);
  for (int place = end + within; place < tile_end; place += split_rows)
    (void)parts.store(parts.load(0, false), place, 1.0F);
}

template <typename Parts, int D>
__device__ __forceinline__ void split_keys(const SplitProblem& p, int head, int block) {
  __shared__ float sizes[split_rows];
  const int within = static_cast<int>(threadIdx.x) / 4, lane = static_cast<int>(threadIdx.x) % 32;
  const int n = block * split_rows + within;
  const bool exists = n < p.keys;
  KeyScale result{1.0F, 1.0F, 0.0F, split_rows, split_rows};
#pragma unroll 1
  for (int tensor = 0; tensor < 2; ++tensor) {
    const Strides& strides = tensor == 0 ? p.k_strides : p.v_strides;
    const float* const from = (tensor == 0 ? p.k_in : p.v_in) +
                              strides.offset(head / p.entry_kv_heads, head % p.entry_kv_heads, n);
    SplitRow<D> row;
    const bool is_wide = (reinterpret_cast<std::uintptr_t>(from) & 15) == 0 && p.columns % 4 == 0;
    row.load(from, exists, p.columns, is_wide);
    float scale = 1.0F;
    if constexpr (Parts::is_scaled) {
      const float largest = row.largest();
      __syncthreads();  // all have read the sizes of K
      if (threadIdx.x % 4 == 0) sizes[within] = largest;
      __syncthreads();  // the sizes are there
      const auto first_where = [&](const auto& is) {
        const unsigned low = __ballot_sync(0xffffffffU, is(sizes[lane]));
        const unsigned high = __ballot_sync(0xffffffffU, is(sizes[lane + 32]));
        return low != 0    ? __ffs(static_cast<int>(low)) - 1
               : high != 0 ? __ffs(static_cast<int>(high)) + 31
                           : split_rows;
      };
      const int first = first_where([](float size) { return !(size == 0.0F); });
      const float size = first < split_rows ? sizes[first] : 1.0F;
      const bool is_sized = size >= least_size && size <= largest_size;
      if (is_sized) scale = power_to(tensor == 0 ? key_exponent : value_exponent, size);
      const auto is_refused = [&](float x) {
        return !(x == 0.0F || (x >= least_size && x <= largest_size && x * scale <= fp16_max));
      };
      const int refused = first_where(is_refused);
      if (refused < result.first_refused)
        result.first_refused = static_cast<std::uint16_t>(refused);
      if (tensor == 0) {
        result.k_factor = inverse_power(scale);
        result.k_size = first < split_rows ? size : 0.0F;
        result.first_sized = static_cast<std::uint16_t>(first);
      } else {
        result.v_factor = inverse_power(scale);
      }
      if (is_refused(largest)) row.load(from, false, p.columns, false);
    }
    auto* const to = static_cast<typename Parts::T*>(tensor == 0 ? p.k_parts : p.v_parts) +
                     (static_cast<std::int64_t>(head) * p.keys + n) * D;
    if (exists)
      (void)row.template store<Parts>(to, static_cast<std::int64_t>(p.kv_heads) * p.keys * D,
                                      scale);
  }
  if (Parts::is_scaled && threadIdx.x == 0)
    p.key_scales[static_cast<std::int64_t>(head) * p.key_blocks() + block] = result;
}

/// Blocks: first those of Q, heads * ceil(queries / split_rows), then those of K and V.
template <Executor home, typename Parts, int D>
__global__ void __launch_bounds__(split_threads)
    fp32_split(const __grid_constant__ SplitProblem p) {
  const int query_blocks = (p.queries + split_rows - 1) / split_rows;
  const int key_blocks = p.key_blocks();
  const std::int64_t block = blockIdx.x;
  const std::int64_t of_queries = static_cast<std::int64_t>(p.heads) * query_blocks;
  const bool is_query = block < of_queries;
  const std::int64_t rest = is_query ? block : block - of_queries;
  const int blocks = is_query ? query_blocks : key_blocks;
  const int head = static_cast<int>(rest / blocks), at = static_cast<int>(rest % blocks);
  if (is_query) {
    if constexpr (Parts::is_scaled)
      split_queries<Parts, D>(p, head, at);
    else
      gather_queries<Parts, D>(p, head, at);
  } else if (Parts::is_scaled || are_keys_served(p, head, at)) {
    split_keys<Parts, D>(p, head, at);
  }
}

}  // namespace attest
