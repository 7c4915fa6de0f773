#pragma once

// Score modifications: which pairs there are, what is added to their scores, and the factors of
// their weights. Kernels are compiled with them and without: what they cost in registers is no
// matter of problems that have none.

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/attention/dropout.hpp"
#include "core/attention/mask.hpp"
#include "gpu/kernels/backward_entry.cuh"
#include "gpu/kernels/backward_workspace.cuh"

namespace attest {

/// Numbers of a pair besides its products.
struct BwdPair {
  float shift = 0.0F;  ///< what is added to the score, less LSE, in units of log2
  float delta = 0.0F;
  float kept = 0.0F;     ///< factor of the weight by dropout
  bool is_seen = false;  ///< false: P and dS are 0
};

/// Pairs of one query head of an entry, in a problem without modifications.
class BwdPlainPairs {
 public:
  __device__ BwdPlainPairs(const BackwardArguments&, const BackwardEntry& entry, std::int64_t,
                           std::int64_t)
      : entry_(entry) {}
  __device__ bool sees(int row, int key) const { return entry_.sees(row, key); }
  __device__ bool any_sees(int row, int row_count, int key, int key_count) const {
    return entry_.any_sees(row, row_count, key, key_count);
  }
  __device__ bool all_see(int row, int row_count, int key, int key_count) const {
    return entry_.all_see(row, row_count, key, key_count);
  }
  __device__ BwdPair pair(int, int, float lse2, float delta, bool is_seen) const {
    return {-lse2, delta, 1.0F, is_seen};
  }

 private:
  const BackwardEntry& entry_;
};

/// Pairs of one query head of an entry, in a problem with modifications.
class BwdModifiedPairs {
 public:
  __device__ BwdModifiedPairs(const BackwardArguments& a, const BackwardEntry& entry,
                              std::int64_t entry_index, std::int64_t head)
      : problem_(a.problem),
        entry_(entry_index),
        head_(head),
        rows_(entry.rows),
        keys_(entry.keys),
        reach_(a.problem, entry.rows, entry.keys),
        listed_(a, entry_index) {
    if (a.key_mask != nullptr) key_mask_ = a.key_mask + entry_index * problem_.key_len;
    if (a.prefix_lengths != nullptr) prefix_ = a.prefix_lengths[entry_index];
    if (a.key_documents != nullptr) {
      query_documents_ = a.query_documents + entry_index * problem_.query_len;
      key_documents_ = a.key_documents + entry_index * problem_.key_len;
    }
    if (a.slopes != nullptr) {
      has_slope_ = true;
      slope_ = a.slopes[head] * std::numbers::log2e_v<float>;
      diagonal_ = -static_cast<int>(key_distance(problem_.mask, rows_, keys_, 0, 0));
    }
    if (a.bias == nullptr) return;
    bias_ = a.bias + a.bias_strides.offset(entry_index, head, 0);
    bias_stride_ = a.bias_strides.row;
  }

  /// As BackwardEntry says it, prefixes, documents and lists having a say.
  __device__ bool sees(int row, int key) const {
    return row < rows_ && key >= reach_.first_key(row) && key < past_key(row) &&
           (key_mask_ == nullptr || key_mask_[key] != 0) &&
           (key_documents_ == nullptr || key_documents_[key] == query_documents_[row]) &&
           listed_.names(row, key);
  }
  /// True if any of these rows may see any of these keys, of which the first is one that there is.
  /// Numbers of documents ascend, too, so the first and the last row speak for all. Lists leave no
  /// tile out.
  __device__ bool any_sees(int row, int row_count, int key, int key_count) const {
    if (row >= rows_) return false;
    const int last_row = min(row + row_count, rows_) - 1;
    const int last_key = min(key + key_count, keys_) - 1;
    return key < past_key(last_row) && key + key_count > reach_.first_key(row) &&
           (key_documents_ == nullptr || (key_documents_[key] <= query_documents_[last_row] &&
                                          key_documents_[last_key] >= query_documents_[row]));
  }
  __device__ bool all_see(int row, int row_count, int key, int key_count) const {
    const int last_row = row + row_count - 1, last_key = key + key_count - 1;
    return last_row < rows_ && key_mask_ == nullptr && listed_.first == nullptr &&
           key >= reach_.first_key(last_row) && last_key < past_key(row) &&
           (key_documents_ == nullptr || (query_documents_[row] == query_documents_[last_row] &&
                                          key_documents_[key] == query_documents_[row] &&
                                          key_documents_[last_key] == query_documents_[row]));
  }

  /// The pair of a row and a key, which need not exist if it is not seen. A bias of -infinity hides
  /// the key whatever its score is, one that overflowed, say.
  __device__ BwdPair pair(int row, int key, float lse2, float delta, bool is_seen) const {
    if (!is_seen) return {};
    const float added = added_to_score(row, key);
    return {added - lse2, delta, kept(row, key), added != -INFINITY};
  }

 private:
  /// One past the last key that mask and prefix leave to a row.
  __device__ int past_key(int row) const { return max(reach_.past_key(row), prefix_); }
  /// Sum of ALiBi's term and the bias, in units of log2. Where it is 0 no bit of P shows it.
  __device__ float added_to_score(int row, int key) const {
    float added = 0.0F;
    if (has_slope_) added = -slope_ * fabsf(static_cast<float>(key - row - diagonal_));
    if (bias_ != nullptr) {
      added = fmaf(bias_[row * bias_stride_ + key], std::numbers::log2e_v<float>, added);
    }
    return added;
  }
  __device__ float kept(int row, int key) const {
    if (!(problem_.dropout > 0.0F)) return 1.0F;
    return keeps_weight(problem_, entry_, head_, row, key) ? kept_scale(problem_) : 0.0F;
  }

  const Problem& problem_;
  std::int64_t entry_, head_;
  int rows_, keys_, prefix_ = 0;  ///< of the entry; first keys that all rows see
  KeyReach reach_;
  const std::uint8_t* key_mask_ = nullptr;  ///< null without padding
  /// Documents of the entry's rows and keys, ascending; null without.
  const std::int32_t *query_documents_ = nullptr, *key_documents_ = nullptr;
  ListedItems listed_;
  bool has_slope_ = false;
  float slope_ = 0.0F;           ///< of ALiBi, in units of log2
  int diagonal_ = 0;             ///< key from which ALiBi counts the distances of row 0
  const float* bias_ = nullptr;  ///< of row 0; null without a bias
  std::int64_t bias_stride_ = 0;
};

}  // namespace attest
