#include "verify/judge/whole_numbers.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention/operation.hpp"
#include "core/operations/quantised.hpp"

namespace attest {

double largest_whole(ElementType type) {
  const ElementFormat& format = format_of(type);
  return std::min(std::ldexp(1.0, format.significand_bits), format.max_finite);
}

double largest_exact_sum(const Accumulation& sum) {
  // A sum of 2^F keeps its last whole digit when terms are aligned to it; one of s bits after the
  // point in its significand holds whole numbers to 2^(s + 1).
  return std::ldexp(1.0, std::min(sum.fraction_bits, sum.sum_bits + 1));
}

bool averages_exactly(const PrecisionPlan& precision) {
  constexpr double one_division = 0x1p-24;
  return precision.rescale != Rescale::normalised_steps && precision.splits <= 1 &&
         precision.exp.is_one_at_zero && precision.reference_lag == 0 &&
         precision.division_error <= one_division;
}

void set_scales(const Problem& problem, Inputs& inputs, float value) {
  if (problem.operation != &quantised_operation) return;
  for (const InputIndex scales : {quantised::q_scale, quantised::k_scale, quantised::v_scale}) {
    inputs[scales] = Tensor<float>(quantised_operation[scales].shape(problem), value);
  }
}

Inputs plain_numbers(const Problem& problem, const Inputs& inputs) {
  if (problem.operation != &quantised_operation) return inputs;
  const RealInputs numbers = quantised::numbers_of(problem, inputs);
  Inputs plain;
  for (const InputIndex tensor : {quantised::q, quantised::k, quantised::v}) {
    plain[tensor] = Tensor<float>(numbers[tensor].shape());
    std::ranges::transform(numbers[tensor].values(), plain[tensor].values().begin(),
                           [](double x) { return static_cast<float>(x); });
  }
  set_scales(problem, plain, 1);
  return plain;
}

}  // namespace attest
