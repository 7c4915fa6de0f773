#pragma once

#include <cstdint>

#include "core/operations/backward_arguments.hpp"
#include "gpu/primitives/launch.cuh"

// Memory that the launches of a backward pass share: RowTerms, and behind them ListedItems.
namespace attest {

/// Values that all pairs of a query row share, formed once a row and not once a key tile: LSE in
/// units of log2, and delta, dO.O - dLSE. In the workspace, row (entry, head, query) at its place
/// in [batch, query_heads, query_len]; rows past an entry's end are not written, and must not be
/// read.
struct RowTerms {
  float *lse2, *delta;

  __device__ RowTerms(const BackwardArguments& a, std::int64_t entry, std::int64_t head)
      : lse2(static_cast<float*>(a.workspace) +
             (entry * a.problem.query_heads + head) * a.problem.query_len),
        delta(lse2 + a.problem.rows()) {}

  static std::size_t bytes(const Problem& problem) {
    return static_cast<std::size_t>(2 * problem.rows()) * sizeof(float);
  }
};

/// For each list of keys of an entry a byte an item, 1 where the list names it, so that a pair is
/// looked up and no list searched.
struct ListedItems {
  std::uint8_t* first = nullptr;  ///< [lists, items]; null without lists
  std::int64_t items = 0;         ///< that the longest entry has
  int rows = 1, keys = 1;         ///< rows that share a list, keys of an item

  __device__ ListedItems(const BackwardArguments& a, std::int64_t entry) {
    if (!a.key_lists.is_used()) return;
    rows = static_cast<int>(a.key_lists.rows);
    keys = static_cast<int>(a.key_lists.keys);
    items = (a.problem.key_len + keys - 1) / keys;
    first = static_cast<std::uint8_t*>(a.workspace) +
            2 * a.problem.rows() * static_cast<std::int64_t>(sizeof(float)) +
            entry * a.key_lists.lists * items;
  }
  /// True if the row's list, where there are lists, names the key.
  __device__ bool names(int row, int key) const {
    return first == nullptr || first[row / rows * items + key / keys] != 0;
  }

  static std::size_t bytes(const Problem& problem) {
    const std::int64_t items = (problem.key_len + problem.list_keys - 1) / problem.list_keys;
    return static_cast<std::size_t>(problem.batch * problem.lists() * items);
  }
};

inline constexpr int listing_threads = 128;

/// Writes ListedItems, a block a list.
template <Executor home>
__global__ void __launch_bounds__(listing_threads) backward_list_items(BackwardArguments a) {
  const ListedItems listed(a, 0);
  const std::int64_t list = blockIdx.x;  // among those of all entries
  std::uint8_t* const named = listed.first + list * listed.items;
  for (std::int64_t i = threadIdx.x; i < listed.items; i += listing_threads) named[i] = 0;
  __syncthreads();  // no 1 is followed by another thread's 0
  for (std::int64_t i = threadIdx.x; i < a.key_lists.counts[list]; i += listing_threads) {
    named[a.key_lists.items_of(list)[i]] = 1;
  }
}

template <Executor home>
void launch_list_items(const BackwardArguments& a, Device& device) {
  const std::int64_t lists = a.problem.batch * a.problem.lists();
  if (lists == 0 || a.problem.key_len == 0) return;
  launch(backward_list_items<home>, dim3(static_cast<unsigned>(lists)), dim3(listing_threads), 0,
         device, a);
}

}  // namespace attest
