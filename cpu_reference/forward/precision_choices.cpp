#include "cpu_reference/forward/precision_choices.hpp"

#include <string>
#include <utility>

#include "cpu_reference/forward/emulation.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

using Change = void (*)(PrecisionPlan& plan, ElementType type);

KernelInfo choice(const std::string& name, std::string summary, Change change) {
  KernelInfo kernel = emulated_kernel("choice/" + name, std::move(summary), hopper(),
                                      {ElementType::fp16, ElementType::bf16});
  kernel.source = "claims D3, C33";
  kernel.precision = [change](const Problem& problem, const Plan& plan) {
    PrecisionPlan precision = flash_precision(problem, plan, hopper());
    change(precision, problem.element_type);
    return precision;
  };
  kernel.launch = cpu_launch([precision = kernel.precision](
                                 const Problem& problem, const Plan& plan, const Inputs& inputs) {
    return emulate(problem, plan, precision(problem, plan).as<PrecisionPlan>(), inputs);
  });
  return kernel;
}

}  // namespace

std::vector<KernelInfo> precision_choices() {
  return {
      choice("flash", "P in 16 bits before P V, l from P before that rounding, fp32 inside",
             [](PrecisionPlan&, ElementType) {}),
      choice("weights_in_fp32", "P stays fp32",
             [](PrecisionPlan& plan, ElementType) { plan.weight_format = ElementType::fp32; }),
      choice("sum_of_rounded_weights", "l sums P after it was rounded to 16 bits",
             [](PrecisionPlan& plan, ElementType) { plan.sums_rounded_weights = true; }),
      choice("fp32_fma", "products summed by fp32 FMAs, not by tensor cores",
             [](PrecisionPlan& plan, ElementType) {
               plan.score = plan.value = {.kind = Accumulation::Kind::fp32_fma};
             }),
      choice("sm_80", "tensor cores of sm_80: 8 terms a step, 24 fraction bits",
             [](PrecisionPlan& plan, ElementType) { plan.score = plan.value = ampere(); }),
      choice("normalised_steps", "O is divided after every key block",
             [](PrecisionPlan& plan, ElementType) { plan.rescale = Rescale::normalised_steps; }),
      choice("partials_in_16_bits", "finished parts of key splits are stored in 16 bits",
             [](PrecisionPlan& plan, ElementType type) {
               plan.merge = Merge::lse_pairs;
               plan.partial_format = type;
             }),
  };
}

}  // namespace attest
