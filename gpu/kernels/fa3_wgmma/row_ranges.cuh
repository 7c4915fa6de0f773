#pragma once

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/fa3_wgmma/parameters.cuh"

namespace attest {

inline constexpr int fa3_ranges_threads = 128;

/// The first of `keys` keys whose document is not below `document`, or one past the last key.
/// Numbers of documents ascend.
inline __device__ int first_key_of_document(const std::int32_t* documents, int keys, int document) {
  int begin = 0, end = keys;
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

/// Writes the keys that mask, prefix and document leave to each query of each entry, a thread a
/// query: what the blocks behind it would otherwise search for in every tile.
template <Executor home>
__global__ void __launch_bounds__(fa3_ranges_threads)
    fa3_find_ranges(ForwardArguments a, Fa3RowRange* ranges) {
  const Problem& problem = a.problem;
  const std::int64_t n = std::int64_t{blockIdx.x} * fa3_ranges_threads + threadIdx.x;
  if (n >= problem.batch * problem.query_len) return;
  const std::int64_t entry = n / problem.query_len;
  const auto query = static_cast<int>(n % problem.query_len);
  const auto keys = static_cast<int>(problem.key_len);
  const KeyReach reach(problem, static_cast<int>(problem.query_len), keys);
  int begin = reach.first_key(query), end = reach.past_key(query);
  if (a.prefix_lengths != nullptr) end = max(end, a.prefix_lengths[entry]);
  if (a.key_documents != nullptr) {
    const std::int32_t* const documents = a.key_documents + entry * problem.key_len;
    const int document = a.query_documents[n];
    begin = max(begin, first_key_of_document(documents, keys, document));
    end = min(end, first_key_of_document(documents, keys, document + 1));
  }
  ranges[n] = {min(begin, end), end};
}

}  // namespace attest
