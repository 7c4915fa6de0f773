#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/attention/dropout.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/operations/forward.hpp"

namespace attest {

/// Distances that fp32 holds.
inline constexpr std::int64_t exact_distances = std::int64_t{1} << 24;

/// k of step 14 in error_bound.hpp: roundings that a term of a score passes through at most where
/// ALiBi or a bias adds to it; 0 where nothing does. `is_scaled`: q.k was rounded to a score
/// before; `is_base_2`: scores are in units of log2.
[[nodiscard]] inline double roundings_of_terms(const Problem& problem, bool is_scaled,
                                               bool is_base_2) {
  const bool has_slopes = problem.slopes == Slopes::given;
  double roundings = (has_slopes ? 2 : 0) + (problem.bias != Bias::none ? 1 : 0);
  if (roundings == 0) return 0;
  if (has_slopes && std::max(problem.query_len, problem.key_len) > exact_distances) roundings += 1;
  return roundings + (is_scaled ? 0 : 1) + (is_base_2 ? 2 : 0);
}

/// Numbers that are added to a score after the softcap.
template <class Number>
struct AddedToScore {
  Number sum = 0, magnitude = 0;
  bool is_finite = true;
};
/// Numbers that row (b, h, query) adds to the score of a key.
template <class Number, class Tensors>
[[nodiscard]] AddedToScore<Number> added_to_score(const Problem& problem, const Tensors& inputs,
                                                  std::int64_t b, std::int64_t h,
                                                  std::int64_t query, std::int64_t key) {
  AddedToScore<Number> added;
  if constexpr (std::is_same_v<Tensors, Inputs>) {
    for (const double term : {forward::alibi_of(problem, inputs, b, h, query, key),
                              double{forward::bias_of(problem, inputs, b, h, query, key)}}) {
      added.is_finite = added.is_finite && std::isfinite(term);
      added.sum += term;
      added.magnitude += std::abs(term);
    }
  }
  return added;
}

/// d_j of a key's weight: 0 where it falls, 1 / (1 - p) where dropout leaves it, 1 without dropout.
template <class Number>
[[nodiscard]] Number kept_factor(const Problem& problem, std::int64_t b, std::int64_t h,
                                 std::int64_t query, std::int64_t key) {
  if (!(problem.dropout > 0)) return Number(1);
  if (!keeps_weight(problem, b, h, query, key)) return Number(0);
  return Number(1) / (Number(1) - Number(problem.dropout));
}

}  // namespace attest
