#pragma once

#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Rows of one (batch, head) in global memory, the head dimension contiguous. Offsets are 64-bit;
/// no alignment is assumed.
template <typename T>
struct RowView {
  T* first = nullptr;
  std::int64_t stride = 0;  ///< elements from one row to the next
  std::int64_t count = 0;   ///< rows that exist: nothing past them may be touched

  __device__ T* row(std::int64_t n) const { return first + n * stride; }
  __device__ RowView<const T> as_const() const { return {first, stride, count}; }
  /// Number of the `rows` rows from `begin` that exist.
  __device__ int existing(std::int64_t begin, int rows) const {
    const std::int64_t left = count - begin;
    return left < rows ? static_cast<int>(left) : rows;
  }
};

/// Number of a tile's `tile` keys from `first_key` that a row sees which sees the first `visible`
/// keys. They are the tile's first ones, so loops that stop there touch neither masked keys nor
/// keys past the end, NaN or not.
inline __device__ int keys_seen(std::int64_t visible, std::int64_t first_key, int tile) {
  const std::int64_t left = visible - first_key;
  return left <= 0 ? 0 : left < tile ? static_cast<int>(left) : tile;
}

/// The four tensors as one query head sees them; T is what the element type of the problem is.
template <typename T>
struct HeadRowsOf {
  RowView<const T> q, k, v;
  RowView<T> o;
};
using HeadRows = HeadRowsOf<float>;

template <typename T = float>
__device__ HeadRowsOf<T> head_rows(const ForwardArguments& a, std::int64_t batch,
                                   std::int64_t query_head) {
  const Problem& problem = a.problem;
  const std::int64_t kv_head = problem.kv_head_of(query_head);
  return {{static_cast<const T*>(a.q) + a.q_strides.offset(batch, query_head, 0), a.q_strides.row,
           problem.query_len},
          {static_cast<const T*>(a.k) + a.k_strides.offset(batch, kv_head, 0), a.k_strides.row,
           problem.key_len},
          {static_cast<const T*>(a.v) + a.v_strides.offset(batch, kv_head, 0), a.v_strides.row,
           problem.key_len},
          {static_cast<T*>(a.o) + a.o_strides.offset(batch, query_head, 0), a.o_strides.row,
           problem.query_len}};
}

}  // namespace attest
