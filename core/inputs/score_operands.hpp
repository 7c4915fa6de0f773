#pragma once

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

namespace attest {

// Operands of score modifications (core/attention/problem.hpp), drawn by InputSpec::seed, whatever
// the family of Q, K and V. In half of the seeds they are of the size of usual logits; otherwise
// some of them are 0, far above all logits or far below, and where that is defined -infinity.

/// Sinks [1, query_heads, 1, 1], in units of scores: N(0, 2); else also 0, -infinity, and up to 100
/// times the family's magnitude on either side.
[[nodiscard]] Tensor<float> drawn_sinks(const Problem& problem, const InputSpec& spec);
/// Slopes [1, query_heads, 1, 1], in scores a key: the geometric series 2^(-8 (h + 1) / heads) of
/// the paper; else drawn ones, 0, negative ones, and up to 30.
[[nodiscard]] Tensor<float> drawn_slopes(const Problem& problem, const InputSpec& spec);
/// A bias in units of scores, shaped as the problem says: N(0, 1); else also 0, +-100, -infinity of
/// single pairs and, in every eighth row, of all pairs.
[[nodiscard]] Tensor<float> drawn_bias(const Problem& problem, const InputSpec& spec);

}  // namespace attest
