#pragma once

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

namespace attest {

// Input families whose point is V; Q and K are N(0, 1). V differs between KV heads in all of them,
// or an error of the index map would not show.

/// V of one number for all keys of a head.
[[nodiscard]] Inputs constant_v(const Problem& problem, const InputSpec& spec);
/// V of 1 in one column, which moves with the key, and 0 elsewhere; another power of two for every
/// head.
[[nodiscard]] Inputs one_hot_v(const Problem& problem, const InputSpec& spec);
/// V near `magnitude`.
[[nodiscard]] Inputs positive_v(const Problem& problem, const InputSpec& spec);
/// V of the key's number, moved by a quarter for every head.
[[nodiscard]] Inputs key_index_v(const Problem& problem, const InputSpec& spec);
/// V of +magnitude for even keys and -magnitude for odd ones, halved from head to head.
[[nodiscard]] Inputs alternating_v(const Problem& problem, const InputSpec& spec);
/// V of N(0, 1) times a power of two of the head's own.
[[nodiscard]] Inputs scaled_v(const Problem& problem, const InputSpec& spec);

// Input families whose point is Q and K, and what their products come to. V is N(0, 1), or like
// them.

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
/// Q, K and V of which only the last quarter of the columns is non-zero (triton#621: the first 64
/// dims were all that counted).
[[nodiscard]] Inputs late_dims(const Problem& problem, const InputSpec& spec);
/// FlashAttention-3's mix: N(0, 1) + N(0, 100) Bernoulli(0.001) [FA3 §4.3]. 100 is read as the
/// variance; magnitude 10 reads it as the standard deviation.
[[nodiscard]] Inputs outliers(const Problem& problem, const InputSpec& spec);
/// Q, K and V of mostly zeros, otherwise whole numbers in [-2, 2]: sums are exact, so that only the
/// softmax rounds.
[[nodiscard]] Inputs sparse_integers(const Problem& problem, const InputSpec& spec);

// Partial results to be merged (core/operations/combine.hpp). O_p is N(0, 1) unless said otherwise;
// that of an empty part is 0.

/// LSE_p N(0, magnitude).
[[nodiscard]] Inputs partial_normal(const Problem& problem, const InputSpec& spec);
/// Every part a multiple of `magnitude` above or below the others, in drawn order.
[[nodiscard]] Inputs partial_far_apart(const Problem& problem, const InputSpec& spec);
/// One part of each row lies `magnitude` above the others.
[[nodiscard]] Inputs partial_dominant(const Problem& problem, const InputSpec& spec);
/// A third of the parts are empty, the first and the last more often; LSE_p N(0, magnitude).
[[nodiscard]] Inputs partial_some_empty(const Problem& problem, const InputSpec& spec);
/// Parts that have all seen no key: LSE_p -infinity.
[[nodiscard]] Inputs partial_all_empty(const Problem& problem, const InputSpec& spec);
/// All parts of a row are the same.
[[nodiscard]] Inputs partial_copies(const Problem& problem, const InputSpec& spec);
/// All LSE_p are `magnitude`, and O_p is near 1: errors of the weights' sum do not average out.
[[nodiscard]] Inputs partial_ties(const Problem& problem, const InputSpec& spec);

// Inputs of a backward pass (core/operations/backward.hpp). Q, K, V and dO are N(0, 1) unless said
// otherwise, O and LSE those of an exact forward pass.

/// dO is 0.
[[nodiscard]] Inputs gradient_zero(const Problem& problem, const InputSpec& spec);
/// One element of dO of each query head is `magnitude`, the others are 0.
[[nodiscard]] Inputs gradient_one_hot(const Problem& problem, const InputSpec& spec);
/// dO and V whole numbers in [-4, 4].
[[nodiscard]] Inputs gradient_integers(const Problem& problem, const InputSpec& spec);
/// dO N(0, magnitude).
[[nodiscard]] Inputs gradient_scaled(const Problem& problem, const InputSpec& spec);
/// dO is O; logits of standard deviation `magnitude`.
[[nodiscard]] Inputs gradient_along_o(const Problem& problem, const InputSpec& spec);
/// Every column of K and V has a mean of its own of the size of `magnitude`.
[[nodiscard]] Inputs gradient_mean_kv(const Problem& problem, const InputSpec& spec);
/// O is off by an ulp of bf16 and LSE by 2^-10, N(0, 1) times.
[[nodiscard]] Inputs gradient_inexact_saved(const Problem& problem, const InputSpec& spec);

// Codes and scales (core/operations/quantised.hpp). Logits of standard deviation `magnitude`.

/// V is N(0, 1) + magnitude, logits are N(0, 1).
[[nodiscard]] Inputs offset_v(const Problem& problem, const InputSpec& spec);
/// K is N(0, 1) and, in every column of a head, magnitude times one more N(0, 1) that all keys
/// share.
[[nodiscard]] Inputs channel_means_k(const Problem& problem, const InputSpec& spec);
/// K and V run through all finite codes.
[[nodiscard]] Inputs all_codes(const Problem& problem, const InputSpec& spec);
/// N(0, 1), then every scale times a power of two of its own: from 2^-10 to 2^10 those of V.
[[nodiscard]] Inputs distinct_scales(const Problem& problem, const InputSpec& spec);

// Numbers to be quantised (core/operations/quantise.hpp).

/// N(0, 1) times a power of two for the row, one for the column and one for the head, 2^-5 to 2^5
/// each.
[[nodiscard]] Inputs numbers_far_apart(const Problem& problem, const InputSpec& spec);
/// N(0, 1), but one element of each row and one of each column is about -magnitude.
[[nodiscard]] Inputs numbers_below_zero(const Problem& problem, const InputSpec& spec);
/// Column 0 and every 32nd row are the code's largest number times the head's scale, all others
/// halfway between two codes times that: the scale is a power of two, or any number if the
/// magnitude is 2 or more.
[[nodiscard]] Inputs numbers_between_codes(const Problem& problem, const InputSpec& spec);
/// Every third head is 0, and every other row of the others; zeros are of both signs.
[[nodiscard]] Inputs numbers_of_zeros(const Problem& problem, const InputSpec& spec);
/// N(0, magnitude), the magnitude near the smallest number of fp32.
[[nodiscard]] Inputs numbers_near_zero(const Problem& problem, const InputSpec& spec);
/// N(0, magnitude), of which one in 16 is NaN or an infinity.
[[nodiscard]] Inputs numbers_not_finite(const Problem& problem, const InputSpec& spec);

// Scores of keys to choose from (core/operations/select.hpp), weights of heads among them.

/// Scores that are whole multiples of one number, each key another, in a drawn order. Their sign is
/// that of the magnitude; 0: rows in turn.
[[nodiscard]] Inputs score_ranks(const Problem& problem, const InputSpec& spec);
/// Scores of three values a row: 0 and two of one sign, rows in turn.
[[nodiscard]] Inputs score_ties(const Problem& problem, const InputSpec& spec);
/// N(0, 1); of one key in eight an element is NaN or an infinity.
[[nodiscard]] Inputs scores_not_finite(const Problem& problem, const InputSpec& spec);

}  // namespace attest
