#include "cpu_reference/rounding/matrix_product.hpp"

#include "cpu_reference/forward/online_softmax_rows.hpp"

namespace attest {

void accumulate_product(const Accumulation& accumulation, std::span<const float> left,
                        ElementType left_type, const ProductOperand& right, std::int64_t first,
                        std::span<float> sum) {
  if (accumulation.kind == Accumulation::Kind::fp32_fma) {
    multiply_accumulate(left, right.row(first), right.lanes(), sum);
  } else {
    accumulate_tensor_core(accumulation, left, left_type, right, first, sum);
  }
}

}  // namespace attest
