#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/attention/dropout.hpp"
#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/head_work.cuh"
#include "gpu/kernels/visible_keys.cuh"

namespace attest {

/// General work and the score modifications of Problem, each where its operand is not null. Rows
/// past the end have the operands of the last one.
template <typename T>
struct ModifiedWork : GeneralWork<T> {
  const float* sinks;                ///< of the query head of row 0, and those behind it
  const float* slopes;               ///< likewise
  const float* bias;                 ///< of query 0 of that head; a number a key
  std::int64_t bias_row, bias_head;  ///< strides
  const std::int32_t *query_documents, *key_documents;  ///< of this entry, ascending
  int prefix;                                           ///< first keys that all rows see
  int diagonal;  ///< key from which ALiBi counts the distances of query 0
  int entry, query_head;
  std::uint64_t least_kept;  ///< least_kept_word(); 0 without dropout

  __device__ __forceinline__ ModifiedWork(const ForwardArguments& a, int head)
      : GeneralWork<T>(a, head) {
    const Problem& problem = a.problem;
    const int group = this->q.group, heads = static_cast<int>(problem.query_heads) / group;
    entry = head / heads;
    query_head = head % heads * group;
    sinks = a.sinks == nullptr ? nullptr : a.sinks + query_head;
    slopes = a.slopes == nullptr ? nullptr : a.slopes + query_head;
    bias = a.bias == nullptr ? nullptr : a.bias + a.bias_strides.offset(entry, query_head, 0);
    bias_row = a.bias_strides.row;
    bias_head = a.bias_strides.head;
    const bool has_documents = a.key_documents != nullptr;
    query_documents = has_documents ? a.query_documents + entry * problem.query_len : nullptr;
    key_documents = has_documents ? a.key_documents + entry * problem.key_len : nullptr;
    prefix = a.prefix_lengths == nullptr ? 0 : a.prefix_lengths[entry];
    const int queries = this->rows / group;
    diagonal = -static_cast<int>(key_distance(problem.mask, queries, this->keys, 0, 0));
    least_kept = least_kept_word(problem);
  }

  __device__ int existing(int row) const { return min(row, this->rows - 1); }
  __device__ int head_in_group(int row) const {
    return this->q.group == 1 ? 0 : existing(row) % this->q.group;
  }
  __device__ int query_of(int row) const { return GeneralWork<T>::query_of(existing(row)); }
  /// One past the last key that mask and prefix leave to a row; its document may end before.
  __device__ int past_key(int row) const { return max(GeneralWork<T>::past_key(row), prefix); }
  __device__ float sink_of(int row) const { return sinks[head_in_group(row)]; }
  /// The sink as a reference: in units of log2.
  __device__ float sink_reference(int row) const {
    return sink_of(row) * std::numbers::log2e_v<float>;
  }
  /// True if a row with this reference and sum has met nothing but its sink: LSE is then the sink,
  /// which a product with ln 2 would round.
  __device__ bool is_sink_alone(int row, float r, float l) const {
    return sinks != nullptr && l == 1.0F && r == sink_reference(row);
  }
  __device__ float slope_of(int row) const { return slopes[head_in_group(row)]; }
  __device__ int diagonal_of(int row) const { return diagonal + query_of(row); }
  /// Numbers that are added to the scores of a row, in natural units; one a key.
  __device__ const float* bias_of(int row) const {
    return bias + query_of(row) * bias_row + head_in_group(row) * bias_head;
  }
  __device__ bool has_documents() const { return key_documents != nullptr; }
  __device__ int document_of(int row) const { return query_documents[query_of(row)]; }
  /// The first key whose document is not below `document`, or one past the last key.
  __device__ int first_key_of(int document) const {
    int begin = 0, end = this->keys;
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (key_documents[middle] < document)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
  __device__ bool drops() const { return least_kept > 0; }
};

}  // namespace attest
