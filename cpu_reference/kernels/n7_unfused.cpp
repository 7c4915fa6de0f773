// N7 without fusion: attention stores O, and what would be launches of their own multiply it by its
// gate and add its residual, storing it each time.
//
// It is there for its roundings, PrecisionPlan::rounds_before_epilogue: a fused kernel whose bound
// were as wide as this one's could hide a rounding of O before its epilogue.

#include <functional>
#include <vector>

#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

constexpr Accumulation products{.kind = Accumulation::Kind::fp32_fma};

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = flash_precision(problem, plan, products);
  result.rounds_before_epilogue = true;
  return result;
}

/// O becomes operation(O, operand) element by element, rounded to its format.
void apply(const Problem& problem, const Tensor<float>& operand,
           const std::function<float(float, float)>& operation, Tensor<float>& o) {
  for (std::size_t i = 0; i < operand.values().size(); ++i) {
    float& x = o.values()[i];
    x = static_cast<float>(round_to(problem.element_type, operation(x, operand.values()[i])));
  }
}

Outputs attend(const Problem& problem, const Plan& plan, const Inputs& inputs) {
  Problem attention = problem;
  take_away_epilogue(attention);
  Outputs outputs = emulate(attention, plan, flash_precision(attention, plan, products), inputs);
  // An operand that there is not has no element.
  apply(problem, inputs[forward::gate], std::multiplies<>(), outputs[forward::o]);
  apply(problem, inputs[forward::residual], std::plus<>(), outputs[forward::o]);
  return outputs;
}

KernelInfo kernel() {
  KernelInfo info =
      emulated_kernel("n7_unfused", "gate and residual of O as steps that store it, each of them",
                      products, {ElementType::fp32, ElementType::fp16, ElementType::bf16});
  info.source = "claim N7";
  info.features = {.gate = true, .residual = true};
  info.precision = precision;
  info.launch = cpu_launch(attend);
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
