#pragma once

#include <cmath>

#include "gpu/kernels/fp32_wgmma/parameters.cuh"
#include "gpu/kernels/fp32_wgmma/powers.cuh"
#include "gpu/kernels/fp32_wgmma/scaling.hpp"

namespace attest {

// Which rows fp16 parts leave to bf16 parts: the rules are in the README. A row is judged by what
// it sees and by nothing else.

/// Because of these keys, of which the row sees the first `seen`? `reach`: RowScale's.
__device__ inline bool refuses(const KeyScale& scale, int seen, float reach) {
  return scale.first_refused < min(seen, split_rows) ||
         (scale.first_sized < seen && !(reach * scale.k_size <= 1.0F));
}

/// At the end: `reach` is infinite where one of its keys was a reason, l the sum of its weights, of
/// which the largest is 2^weight_lead.
__device__ inline bool is_refused(float reach, int past, float l) {
  return !(reach < INFINITY) || (past > 0 && past <= few_keys) ||
         (past > 0 && !(l >= (1 + one_key_share) * power_of(weight_lead)));
}

}  // namespace attest
