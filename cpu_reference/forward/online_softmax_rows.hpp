#pragma once

#include <cstdint>
#include <span>

namespace attest {

/// sum[i] = fma(weights[t], rows[t * row_stride + i], sum[i]) for t = 0, 1, ..., in that order: one
/// rounding to fp32 a term, so |error| <= gamma_T * sum_t |weights[t] rows[t][i]| for T terms added
/// to a zero sum. Same bits on every machine: a fused multiply-add is correctly rounded whether the
/// processor has one or not. `rows` points at element 0 of row 0 and each row has at least
/// sum.size() elements.
void multiply_accumulate(std::span<const float> weights, const float* rows, std::int64_t row_stride,
                         std::span<float> sum);

}  // namespace attest
