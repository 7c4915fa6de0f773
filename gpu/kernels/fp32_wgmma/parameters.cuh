#pragma once

#include <cstdint>

#include "core/attention/grid_order.hpp"
#include "core/attention/layout.hpp"
#include "core/base/host_device.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

inline constexpr int split_rows = 64;  ///< keys that share a power of two; rows that a block splits
inline constexpr int split_threads = 256;
inline constexpr int flag_rows = 16;        ///< query rows of a warp, which share a flag
inline constexpr int bf16_tile_rows = 128;  ///< gathered rows of a block that multiplies bf16 parts

/// Facts about a query row that the split leaves.
struct RowScale {
  float factor;  ///< 2^-e: the row's parts are those of 2^e times it
  float reach;   ///< times KeyScale::size: error of a score over what is allowed; infinite: none is
};

/// Facts about split_rows keys that the split leaves.
struct KeyScale {
  float k_factor, v_factor;     ///< 2^-e of K and of V
  float k_size;                 ///< largest |element| of the first key of K that is not 0
  std::uint16_t first_sized;    ///< that key, counted from the first of these
  std::uint16_t first_refused;  ///< first key that has no parts; split_rows: all have
};

/// Rows of a warp that fp16 parts do not serve: bits 4 g to 4 g + 3 of `low` are row g's, of `high`
/// row g + 8's.
struct RowFlags {
  unsigned low, high;

  /// Flags of the first `rows` rows, 1 to 16.
  static ATTEST_HOST_DEVICE RowFlags of_first(int rows) {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - 4 * rows);
    return {static_cast<unsigned>(all), static_cast<unsigned>(all >> 32)};
  }
  __device__ bool has(int row) const { return (bits() >> 4 * row & 1U) != 0; }
  __device__ int count() const { return __popcll(bits()) / 4; }
  /// Flags of rows below `row`, which is 0 to 15.
  __device__ int count_below(int row) const {
    return __popcll(bits() & ((std::uint64_t{1} << 4 * row) - 1)) / 4;
  }

 private:
  __device__ std::uint64_t bits() const { return std::uint64_t{high} << 32 | low; }
};

/// Parameters of a launch, for its blocks. Lengths are in 32 bits.
struct SplitProblem : CausalKeys<SplitProblem> {
  TensorMap q, k, v;  ///< parts, [parts, heads, rows, D]
  const float *q_in, *k_in, *v_in;
  float *o, *lse;  ///< lse: [heads, queries]
  void *q_parts, *k_parts, *v_parts;
  RowScale* rows;        ///< [heads, queries]
  KeyScale* key_scales;  ///< [kv_heads, key_blocks()]
  RowFlags* flags;       ///< [heads, ceil(queries / flag_rows)]
  int* served;           ///< [heads]: number of rows that bf16 parts serve
  int* served_rows;      ///< [heads, queries]: these rows, ascending
  Strides q_strides, k_strides, v_strides, o_strides;
  int heads, kv_heads;  ///< of the batch together
  int entry_heads, entry_kv_heads;
  int queries, keys, columns;
  int reach;         ///< query i sees keys below min(keys, i + reach)
  float scale;       ///< size of the problem's
  float c;           ///< scale * log2(e)
  bool is_negative;  ///< the problem's scale is: queries change their sign
  bool refuses_all;  ///< every row is for the bf16 parts
  TileGrid grid;
  std::int64_t order, order_group;

  ATTEST_HOST_DEVICE int key_blocks() const { return (keys + split_rows - 1) / split_rows; }
  ATTEST_HOST_DEVICE int flags_of_head() const { return (queries + flag_rows - 1) / flag_rows; }
  ATTEST_HOST_DEVICE RowFlags& flags_of(int head, int row) const {
    return flags[static_cast<std::int64_t>(head) * flags_of_head() + row / flag_rows];
  }
  /// The kv head of the batch that a head of the batch uses.
  ATTEST_HOST_DEVICE int kv_head_of(int head) const {
    return head / entry_heads * entry_kv_heads +
           head % entry_heads / (entry_heads / entry_kv_heads);
  }
};

}  // namespace attest
