#pragma once

#include "core/attention/accumulation.hpp"

namespace attest {

/// Roundings of the scores of select_operation, in fp32: products q.k, the scale once, before or
/// after max(s, 0), which rounds nothing, and the weighted sum over heads, in any order, with or
/// without fused multiply-adds. What is compared and returned is that sum.
struct SelectRoundings {
  Accumulation score{};  ///< Q K^T, chain of head_dim
};

}  // namespace attest
