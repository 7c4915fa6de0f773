#pragma once

// The launch before all others where there are prefixes or documents: which queries see a key, and
// which keys a query sees. Neither end falls from one to the next.

#include "core/operations/backward_arguments.hpp"
#include "gpu/kernels/bwd_wgmma/parameters.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

inline constexpr int bwd_ranges_threads = 128;

/// The first of `count` queries or keys whose document is not below `document`, or `count`. Numbers
/// of documents ascend.
inline __device__ int bwd_first_of_document(const std::int32_t* documents, int count,
                                            int document) {
  int begin = 0, end = count;
  while (begin < end) {
    const int middle = (begin + end) / 2;
    if (documents[middle] < document) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// Part of a range in documents of that number.
inline __device__ BwdSeen bwd_in_document(BwdSeen seen, const std::int32_t* documents, int count,
                                          int document) {
  return {max(seen.first, bwd_first_of_document(documents, count, document)),
          min(seen.past, bwd_first_of_document(documents, count, document + 1))};
}

/// Pairs of an entry, as mask, prefix and documents leave them.
struct BwdEntryRanges {
  int queries, keys, prefix = 0;
  const std::int32_t *query_documents = nullptr, *key_documents = nullptr;  ///< null without
  KeyReach reach;

  __device__ BwdEntryRanges(const BackwardArguments& a, std::int64_t entry)
      : queries(static_cast<int>(a.problem.query_len)), keys(static_cast<int>(a.problem.key_len)) {
    if (a.query_starts != nullptr) {
      queries = a.query_starts[entry + 1] - a.query_starts[entry];
      keys = a.key_starts[entry + 1] - a.key_starts[entry];
    }
    if (a.prefix_lengths != nullptr) prefix = a.prefix_lengths[entry];
    if (a.key_documents != nullptr) {
      query_documents = a.query_documents + entry * a.problem.query_len;
      key_documents = a.key_documents + entry * a.problem.key_len;
    }
    reach = KeyReach(a.problem, queries, keys);
  }

  __device__ BwdSeen keys_of_row(int row) const {
    const BwdSeen seen{max(0, row + reach.begin), max(reach.past_key(row), prefix)};
    if (key_documents == nullptr) return seen;
    return bwd_in_document(seen, key_documents, keys, query_documents[row]);
  }
  __device__ BwdSeen rows_of_key(int key) const {
    const BwdSeen seen{key < prefix ? 0 : max(0, key - reach.reach + 1),
                       min(queries, key - reach.begin + 1)};
    if (key_documents == nullptr) return seen;
    return bwd_in_document(seen, query_documents, queries, key_documents[key]);
  }
};

/// A thread for each query, each key and each tile of `key_tile` keys that a full entry has. What
/// lies past an entry's lengths is not written, but for tiles, which see nothing there.
template <Executor home>
__global__ void __launch_bounds__(bwd_ranges_threads)
    bwd_find_ranges(BackwardArguments a, BwdSums sums, int key_tile) {
  const auto query_len = static_cast<int>(a.problem.query_len);
  const auto key_len = static_cast<int>(a.problem.key_len);
  const int key_tiles = (key_len + key_tile - 1) / key_tile;
  const std::int64_t in_entry = std::int64_t{query_len} + key_len + key_tiles;
  const std::int64_t n = std::int64_t{blockIdx.x} * bwd_ranges_threads + threadIdx.x;
  if (n >= a.problem.batch * in_entry) return;
  const std::int64_t entry = n / in_entry;
  const BwdEntryRanges of(a, entry);
  const auto i = static_cast<int>(n % in_entry);
  if (i < query_len) {
    if (i < of.queries) sums.keys_of_rows[entry * query_len + i] = of.keys_of_row(i);
  } else if (i < query_len + key_len) {
    const int key = i - query_len;
    if (key < of.keys) sums.rows_of_keys[entry * key_len + key] = of.rows_of_key(key);
  } else {
    const int tile = i - query_len - key_len, key = tile * key_tile;
    BwdRowTiles tiles(0, 0);
    if (key < of.keys) {
      const int last_key = min(key + key_tile, of.keys) - 1;
      tiles = {of.rows_of_key(key).first, of.rows_of_key(last_key).past};
    }
    sums.row_tiles[entry * key_tiles + tile] = {tiles.first, tiles.past};
  }
}

/// Launches bwd_find_ranges, unless masks alone say what is seen.
template <Executor home>
void launch_ranges(const BackwardArguments& a, const BwdSums& sums, Device& device) {
  const std::int64_t key_tiles = (a.problem.key_len + a.plan.key_tile - 1) / a.plan.key_tile;
  const std::int64_t count =
      a.problem.batch * (a.problem.query_len + a.problem.key_len + key_tiles);
  const std::int64_t blocks = (count + bwd_ranges_threads - 1) / bwd_ranges_threads;
  if (sums.row_tiles == nullptr || blocks == 0) return;
  launch(bwd_find_ranges<home>, dim3(static_cast<unsigned>(blocks)), dim3(bwd_ranges_threads), 0,
         device, a, sums, static_cast<int>(a.plan.key_tile));
}

}  // namespace attest
