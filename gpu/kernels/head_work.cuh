#pragma once

#include <algorithm>
#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/head_rows.cuh"

namespace attest {

// What a block works on: rows that share K and V, and which keys each of them sees.
// Rows are numbered from the first that there is for these keys; rows past the end see what the
// last one does.

/// Dense problems under a mask without windows: the rows of one query head.
template <typename T>
struct DenseWork {
  static constexpr bool is_general = false;
  RowView<const T> q, k, v;
  RowView<T> o;
  float* lse;  ///< of row 0
  int rows;
  KeyReach reach;

  /// `head` counts the batch and the query heads.
  __device__ __forceinline__ DenseWork(const ForwardArguments& a, int head)
      : rows(static_cast<int>(a.problem.query_len)),
        reach(a.problem, rows, static_cast<int>(a.problem.key_len)) {
    const Problem& problem = a.problem;
    const int heads = static_cast<int>(problem.query_heads);  // 32 bits: divisions cost less
    const int entry = head / heads, query_head = head % heads;
    const int kv_head = query_head / (heads / static_cast<int>(problem.kv_heads));
    q = {static_cast<const T*>(a.q) + a.q_strides.offset(entry, query_head, 0), a.q_strides.row,
         problem.query_len};
    k = {static_cast<const T*>(a.k) + a.k_strides.offset(entry, kv_head, 0), a.k_strides.row,
         problem.key_len};
    v = {static_cast<const T*>(a.v) + a.v_strides.offset(entry, kv_head, 0), a.v_strides.row,
         problem.key_len};
    o = {static_cast<T*>(a.o) + a.o_strides.offset(entry, query_head, 0), a.o_strides.row,
         problem.query_len};
    lse = a.lse + head * problem.query_len;
  }

  static constexpr __device__ bool has_padding() { return false; }
  __device__ int first_key(int) const { return 0; }
  __device__ int past_key(int row) const { return reach.past_key(min(row, rows - 1)); }
  __device__ float& lse_of(int row) const { return lse[row]; }
};

/// Rows of the query heads that share a kv head, packed: row n is query n / group of head n % group
/// of them.
template <typename T>
struct PackedRows {
  T* first = nullptr;
  std::int64_t stride = 0, head_stride = 0;
  std::int64_t count = 0;
  int group = 1;

  __device__ T* row(std::int64_t n) const {
    if (group == 1) return first + n * stride;
    return first + n / group * stride + n % group * head_stride;
  }
  __device__ int existing(std::int64_t begin, int rows) const {
    return RowView<T>{first, stride, count}.existing(begin, rows);
  }
};

/// Everything that Problem has but score modifications: windows, entries with lengths of their own,
/// hidden keys; and rows packed by kv head where the Plan says so.
template <typename T>
struct GeneralWork {
  static constexpr bool is_general = true;
  PackedRows<const T> q;
  RowView<const T> k, v;
  PackedRows<T> o;
  const std::uint8_t* key_mask = nullptr;  ///< of this entry; null without padding
  float* lse;                              ///< of row 0
  std::int64_t lse_stride;                 ///< from a query head to the next
  std::int64_t dense_row;  ///< number of row 0 among the rows that full lengths would have
  std::int64_t full_rows;  ///< of a query head there
  int rows, keys;
  KeyReach reach{};

  /// `head` counts the batch and the query heads, or with packed rows the kv heads.
  __device__ __forceinline__ GeneralWork(const ForwardArguments& a, int head) {
    const Problem& problem = a.problem;
    const int group = group_of(a);
    const int heads = static_cast<int>(problem.query_heads) / group;
    const std::int64_t entry = head / heads, query_head = head % heads * group;
    const std::int64_t kv_head = problem.kv_head_of(query_head);
    const bool has_lengths = a.query_starts != nullptr;
    // Packed entries have no batch dimension: their rows begin where those before them end.
    const std::int64_t batch = has_lengths ? 0 : entry;
    const std::int64_t q_start = has_lengths ? a.query_starts[entry] : 0;
    const std::int64_t k_start = has_lengths ? a.key_starts[entry] : 0;
    const std::int64_t queries =
        has_lengths ? a.query_starts[entry + 1] - q_start : problem.query_len;
    keys = static_cast<int>(has_lengths ? a.key_starts[entry + 1] - k_start : problem.key_len);
    rows = static_cast<int>(queries) * group;
    reach = KeyReach(problem, static_cast<int>(queries), keys);
    q = {static_cast<const T*>(a.q) + a.q_strides.offset(batch, query_head, q_start),
         a.q_strides.row, a.q_strides.head, queries * group, group};
    k = {static_cast<const T*>(a.k) + a.k_strides.offset(batch, kv_head, k_start), a.k_strides.row,
         keys};
    v = {static_cast<const T*>(a.v) + a.v_strides.offset(batch, kv_head, k_start), a.v_strides.row,
         keys};
    o = {static_cast<T*>(a.o) + a.o_strides.offset(batch, query_head, q_start), a.o_strides.row,
         a.o_strides.head, queries * group, group};
    if (a.key_mask != nullptr) key_mask = a.key_mask + entry * problem.key_len;
    const std::int64_t total = has_lengths ? a.query_starts[problem.batch] : problem.query_len;
    lse_stride = total;
    lse = a.lse + (has_lengths ? query_head : entry * problem.query_heads + query_head) * total +
          q_start;
    full_rows = problem.query_len;
    dense_row = (entry * problem.query_heads + query_head) * problem.query_len;
  }

  static __device__ int group_of(const ForwardArguments& a) {
    return a.plan.pack_gqa == PackGqa::yes
               ? static_cast<int>(a.problem.query_heads / a.problem.kv_heads)
               : 1;
  }
  __device__ bool has_padding() const { return key_mask != nullptr; }
  __device__ int query_of(int row) const { return q.group == 1 ? row : row / q.group; }
  __device__ int first_key(int row) const { return reach.first_key(query_of(min(row, rows - 1))); }
  __device__ int past_key(int row) const { return reach.past_key(query_of(min(row, rows - 1))); }
  __device__ float& lse_of(int row) const {
    return q.group == 1 ? lse[row] : lse[row % q.group * lse_stride + row / q.group];
  }
  /// Number of a row in memory that has room for full lengths.
  __device__ std::int64_t dense_row_of(int row) const {
    return dense_row + (q.group == 1 ? row : row % q.group * full_rows + row / q.group);
  }
};

/// Bytes of the widest copy that all rows allow; of packed rows the head stride counts too.
template <typename T>
__device__ int widest_row_copy(const PackedRows<T>& rows, int columns) {
  const std::int64_t strides = rows.group == 1 ? rows.stride : rows.stride | rows.head_stride;
  constexpr int size = static_cast<int>(sizeof(T));
  return widest_copy(rows.first, strides * size, columns * size);
}
template <typename T>
__device__ int widest_row_copy(const RowView<T>& rows, int columns) {
  constexpr int size = static_cast<int>(sizeof(T));
  return widest_copy(rows.first, rows.stride * size, columns * size);
}

}  // namespace attest
