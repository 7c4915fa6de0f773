#pragma once

#include <cstdint>
#include <span>

#include "core/attention/tensor_core_product.hpp"

namespace attest {

/// sum[i] += sum_t left[t] * right[first + t][i], t ascending, for i in [0, sum.size()), sum.size()
/// <= right.lanes(), by the declared arithmetic: fp32_fma is one fused multiply-add a term, rounded
/// to nearest; tensor_core is accumulate_tensor_core(). Keys outside the range are not read. Values
/// of `left` are representable in `left_type`. Throws InvalidInput as accumulate_tensor_core()
/// does.
void accumulate_product(const Accumulation& accumulation, std::span<const float> left,
                        ElementType left_type, const ProductOperand& right, std::int64_t first,
                        std::span<float> sum);

}  // namespace attest
