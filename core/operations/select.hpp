#pragma once

#include "core/attention/operation.hpp"

namespace attest {

/// The keys that sparse attention attends to: the Problem::top_k visible keys of the largest score,
/// for each query [DeepSeek-V3.2-Exp's lightning indexer; NSA, arXiv 2502.11089]. The score of key
/// j for a query sums over all of its heads, which are small and few,
///   s_j = sum_h weights_h max(scale q_h.k_j, 0),
/// with one K for each group of heads as in attention, mostly one for all. Q [batch, query_heads,
/// query_len, head_dim] and K [batch, kv_heads, key_len, head_dim] in element_type, weights [batch,
/// query_heads, query_len] in fp32, of any sign. V and softcap do not enter.
///
/// Visible are the keys that mask, lengths and padding leave, n of them. The answer is what
/// KeyLists of one query and one key an item take:
///   counts  int32 [batch, query_len]: min(top_k, n), and 0 of queries past an entry's length
///   keys    int32 [batch, query_len, top_k]: so many keys, each at most once, in any order; -1
///           behind them
///   scores  fp32 [batch, query_len, top_k]: those of the keys, in their places; -infinity behind
/// They lie so whatever the lengths, as the lists of a Problem do.
///
/// No key that is left out has a larger score than one that is returned; of keys of one score any
/// will do. A score of NaN counts as +infinity, as of a key that nobody may overlook: max(NaN, 0)
/// is NaN, max(-infinity, 0) is 0. Computed scores are off by some roundings: a set is right if
/// some scores within their bounds have it (cpu_reference/select).
extern const Operation select_operation;

/// Tensors of select_operation, by number.
namespace selecting {
inline constexpr InputIndex q{0}, k{1}, weights{2};
inline constexpr OutputIndex keys{0}, counts{1}, scores{2};

/// Number that stands in `keys` behind the last one.
inline constexpr float no_key = -1;
}  // namespace selecting

}  // namespace attest
