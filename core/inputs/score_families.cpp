// Input families whose point is which scores are the largest (core/operations/select.hpp).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/operations/select.hpp"

namespace attest {
namespace {

/// Ranks are written in digits to this base, one a column, which 8 bits hold exactly.
constexpr std::int64_t base = 128;
constexpr std::int64_t most_digits = 3;

Shape weights_shape(const Problem& problem) {
  return select_operation[selecting::weights].shape(problem);
}

/// Queries under which the first columns of a key are the digits of its score.
Tensor<float> digit_queries(const Problem& problem) {
  return filled(query_shape(problem), [](const ElementPlace& at) {
    return at.d < most_digits ? std::pow(base, at.d) : 0;
  });
}

/// Weights of one sign for a row: that of the magnitude, or rows in turn.
Tensor<float> signed_weights(const Problem& problem, double magnitude) {
  return filled(weights_shape(problem), [=](const ElementPlace& at) {
    if (magnitude != 0) return magnitude;
    return at.n % 2 == 0 ? 1.0 : -1.0;
  });
}

}  // namespace

Inputs score_ranks(const Problem& problem, const InputSpec& spec) {
  const std::int64_t keys = std::max<std::int64_t>(problem.key_len, 1);
  std::int64_t step = 1 + 2 * random_below(spec.seed, stream_choice, 0, 1 << 20);
  while (std::gcd(step, keys) > 1) ++step;
  return {digit_queries(problem),
          filled(key_shape(problem),
                 [=](const ElementPlace& at) {
                   std::int64_t rank = 1 + at.n * step % keys;
                   for (std::int64_t d = 0; d < at.d; ++d) rank /= base;
                   return at.d < most_digits ? rank % base : 0;
                 }),
          signed_weights(problem, spec.magnitude)};
}

Inputs score_ties(const Problem& problem, const InputSpec& spec) {
  return {digit_queries(problem),
          filled(key_shape(problem),
                 [&](const ElementPlace& at) {
                   const auto key = static_cast<std::uint64_t>(at.n);
                   return at.d == 0 ? random_below(spec.seed, stream_k, key, 3) : 0;
                 }),
          signed_weights(problem, 0)};
}

Inputs scores_not_finite(const Problem& problem, const InputSpec& spec) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t kinds = 24;
  return {normals(query_shape(problem), spec.seed, stream_q, spec.magnitude),
          filled(key_shape(problem),
                 [&](const ElementPlace& at) {
                   const auto key = static_cast<std::uint64_t>(at.n);
                   const std::int64_t kind = random_below(spec.seed, stream_choice, 2 * key, kinds);
                   const std::int64_t column =
                       random_below(spec.seed, stream_choice, 2 * key + 1, problem.head_dim);
                   if (kind > 2 || at.d != column) {
                     return random_normal(spec.seed, stream_k, at.index);
                   }
                   if (kind == 0) return std::numeric_limits<double>::quiet_NaN();
                   return kind == 1 ? infinity : -infinity;
                 }),
          normals(weights_shape(problem), spec.seed, stream_v)};
}

}  // namespace attest
