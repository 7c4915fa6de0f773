#pragma once

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

// Input families whose point is Q and K, and what their products come to. V is N(0, 1), or like
// them.
namespace attest {

/// N(0, 1) queries, keys and values; logits of standard deviation `magnitude`.
[[nodiscard]] Inputs normal(const Problem& problem, const InputSpec& spec);
/// Queries of zeros.
[[nodiscard]] Inputs zero_q(const Problem& problem, const InputSpec& spec);
/// Every query of a head the same vector.
[[nodiscard]] Inputs constant_q(const Problem& problem, const InputSpec& spec);
/// Logits that rise to `magnitude` along the keys.
[[nodiscard]] Inputs ascending_maxima(const Problem& problem, const InputSpec& spec);
/// Logits that fall from `magnitude` along the keys.
[[nodiscard]] Inputs descending_maxima(const Problem& problem, const InputSpec& spec);
/// Logits from -1.1 to -1 times `magnitude`.
[[nodiscard]] Inputs all_negative(const Problem& problem, const InputSpec& spec);
/// N(0, 1) logits moved down by `magnitude`: the first dimension of Q and K holds nothing but the
/// shift, so that the others keep their differences.
[[nodiscard]] Inputs negative_shift(const Problem& problem, const InputSpec& spec);
/// One key of logit `magnitude`, the same for all queries; the others are N(0, 1).
[[nodiscard]] Inputs dominant_key(const Problem& problem, const InputSpec& spec);
/// The first key of logit `magnitude`, the others of standard deviation 0.1.
[[nodiscard]] Inputs sink(const Problem& problem, const InputSpec& spec);
/// Keys repeat a few vectors of small whole numbers: exact ties, often at the maximum.
[[nodiscard]] Inputs ties(const Problem& problem, const InputSpec& spec);
/// N(0, magnitude) queries and keys: logits of standard deviation about `magnitude`.
[[nodiscard]] Inputs huge_logits(const Problem& problem, const InputSpec& spec);
/// One large logit for every pair: x c and the rounded m c must agree (PyTorch#121558).
[[nodiscard]] Inputs equal_huge_logits(const Problem& problem, const InputSpec& spec);
/// Only the last quarter of the head dims is non-zero (triton#621: the first 64 dims were all that
/// counted).
[[nodiscard]] Inputs late_dims(const Problem& problem, const InputSpec& spec);
/// FlashAttention-3's mix: N(0, 1) + N(0, 100) Bernoulli(0.001) [FA3 §4.3]. 100 is read as the
/// variance; magnitude 10 reads it as the standard deviation.
[[nodiscard]] Inputs outliers(const Problem& problem, const InputSpec& spec);
/// Mostly zeros, otherwise whole numbers in [-2, 2]: sums are exact, so that only the softmax
/// rounds.
[[nodiscard]] Inputs sparse_integers(const Problem& problem, const InputSpec& spec);

}  // namespace attest
