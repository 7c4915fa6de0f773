#pragma once

#include <cstdint>

#include "core/operations/backward_arguments.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/head_rows.cuh"

namespace attest {

/// An entry of the batch as a backward kernel sees it: where its rows and keys lie, and which pairs
/// of them there are. Packed entries have no batch dimension: theirs begin where those before them
/// end.
class BackwardEntry {
 public:
  int rows, keys;  ///< of a head

  __device__ BackwardEntry(const BackwardArguments& a, std::int64_t entry) : entry_(entry) {
    const Problem& problem = a.problem;
    const bool is_packed = a.query_starts != nullptr;
    at_ = is_packed ? 0 : entry;
    first_row_ = is_packed ? a.query_starts[entry] : 0;
    first_key_ = is_packed ? a.key_starts[entry] : 0;
    rows = static_cast<int>(is_packed ? a.query_starts[entry + 1] - first_row_ : problem.query_len);
    keys = static_cast<int>(is_packed ? a.key_starts[entry + 1] - first_key_ : problem.key_len);
    reach_ = KeyReach(problem, rows, keys);
    if (a.key_mask != nullptr) key_mask_ = a.key_mask + entry * problem.key_len;
    lse_rows_ = is_packed ? a.query_starts[problem.batch] : problem.query_len;
  }

  /// Rows of a head of Q, O, dO or dQ; keys of a head of K, V, dK or dV. T may be const.
  template <typename T, typename Data>
  __device__ RowView<T> row_view(Data* tensor, const Strides& strides, std::int64_t head) const {
    return {static_cast<T*>(tensor) + strides.offset(at_, head, first_row_), strides.row, rows};
  }
  template <typename T, typename Data>
  __device__ RowView<T> key_view(Data* tensor, const Strides& strides, std::int64_t head) const {
    return {static_cast<T*>(tensor) + strides.offset(at_, head, first_key_), strides.row, keys};
  }
  /// LSE of row 0 of a head, and dLSE, lie so far from their first number.
  __device__ std::int64_t first_lse(const Problem& problem, std::int64_t head) const {
    return (at_ * problem.query_heads + head) * lse_rows_ + first_row_;
  }

  /// True if the row sees the key. False for rows and keys that do not exist.
  __device__ bool sees(int row, int key) const {
    return row < rows && key >= reach_.first_key(row) && key < reach_.past_key(row) &&
           (key_mask_ == nullptr || key_mask_[key] != 0);
  }
  /// True if any of these rows may see any of these keys. Neither end of what a row sees falls from
  /// row to row, so the first and the last row that exist speak for all.
  __device__ bool any_sees(int row, int row_count, int key, int key_count) const {
    const int last = min(row + row_count, rows) - 1;
    return row < rows && key < reach_.past_key(last) && key + key_count > reach_.first_key(row);
  }
  /// True if all of these rows see all of these keys.
  __device__ bool all_see(int row, int row_count, int key, int key_count) const {
    return row + row_count <= rows && key_mask_ == nullptr &&
           key >= reach_.first_key(row + row_count - 1) && key + key_count <= reach_.past_key(row);
  }

 private:
  std::int64_t entry_, at_, first_row_, first_key_, lse_rows_;
  const std::uint8_t* key_mask_ = nullptr;  ///< null without padding
  KeyReach reach_;
};

}  // namespace attest
