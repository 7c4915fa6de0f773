#include <algorithm>
#include <cmath>
#include <limits>

#include "core/operations/backward.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace law_gradient_of_zero {

Check check_zero(Run& run) {
  Inputs inputs = run.inputs();
  for (const InputIndex gradient : {backward::d_o, backward::d_lse}) {
    std::ranges::fill(inputs[gradient].values(), 0.0F);
  }
  const Launch launch = run.launch(run.the_case(), inputs);
  for (std::size_t i = 0; i < launch.outputs.size(); ++i) {
    const OutputIndex output{i};
    if (!run.kernel().gives(output)) continue;
    // Where a weight can overflow, 0 times it is NaN.
    const Tensor<double> zeros(launch.outputs[output].shape());
    Tensor<double> allowed = zeros;
    for (std::size_t at = 0; at < allowed.values().size(); ++at) {
      const double bound = run.answer()[output].bound.values()[at];
      if (!std::isfinite(bound)) allowed.values()[at] = std::numeric_limits<double>::infinity();
    }
    const Check check = check_of(std::string(backward_operation[output].label),
                                 compare(launch.outputs[output], zeros, allowed),
                                 "dO and dLSE are 0, and this gradient is not");
    if (check.status == Check::Status::failed) return check;
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "gradient_of_zero",
     .statement =
         "where dO and dLSE are 0, dQ, dK and dV are 0: nothing of an earlier launch is left in a "
         "sum, and no infinity meets a 0",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies = {},
     .check = check_zero}};

}  // namespace law_gradient_of_zero
}  // namespace attest
