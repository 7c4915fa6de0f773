#pragma once

#include "core/attention/problem.hpp"

namespace attest {

/// True if a bias, and its gradient, is the same for all entries of the batch.
[[nodiscard]] inline bool entries_share_bias(const Problem& problem) {
  return problem.bias == Bias::heads || problem.bias == Bias::shared;
}
/// True if it is the same for all query heads.
[[nodiscard]] inline bool heads_share_bias(const Problem& problem) {
  return problem.bias == Bias::entries || problem.bias == Bias::shared;
}

}  // namespace attest
