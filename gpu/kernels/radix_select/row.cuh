#pragma once

#include "core/operations/select_arguments.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {
namespace radix_select {

inline constexpr int lanes = 32;  ///< of a warp

/// One query: the keys that its mask leaves, [first, past), and where what belongs to it lies.
struct Row {
  std::int64_t list = 0;  ///< its number among the lists of all entries
  int entry = 0, query = 0;
  SelectArguments::Entry queries, keys;
  int first = 0, past = 0;

  __device__ Row(const SelectArguments& a, std::int64_t list_) : list(list_) {
    entry = static_cast<int>(list / a.problem.query_len);
    query = static_cast<int>(list % a.problem.query_len);
    queries = a.queries_of(entry);
    keys = a.keys_of(entry);
    if (query >= queries.count) return;
    const KeyReach reach(a.problem, static_cast<int>(queries.count), static_cast<int>(keys.count));
    first = reach.first_key(query);
    past = max(first, reach.past_key(query));
  }
  /// True if padding hides the key.
  __device__ bool is_padded(const SelectArguments& a, int key) const {
    return a.key_mask != nullptr && a.key_mask[entry * a.problem.key_len + key] == 0;
  }
  __device__ float weight(const SelectArguments& a, int head) const {
    return a.weights[a.weights_strides.offset(queries.at, head, queries.first + query)];
  }
  /// The scores of its keys in the workspace, as ordered_bits().
  __device__ unsigned* scores(const SelectArguments& a) const {
    return static_cast<unsigned*>(a.workspace) + list * a.problem.key_len;
  }
};

}  // namespace radix_select
}  // namespace attest
