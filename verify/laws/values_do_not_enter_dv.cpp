#include <algorithm>

#include "core/operations/backward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_values_do_not_enter_dv {

/// Finite, and no bit of it that was there.
Inputs with_other_values(Run& run) {
  Inputs inputs = run.inputs();
  for (const InputIndex index : {backward::v, backward::o, backward::d_lse}) {
    const auto values = inputs[index].values();
    std::ranges::reverse(values);
    for (float& x : values) x = -x / 2;
  }
  return inputs;
}

const LawRegistration registration{
    {.name = "values_do_not_enter_dv",
     .statement =
         "dV = P^T dO keeps its bits whatever V, O and dLSE are: it is formed from P, and not from "
         "dS",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies = [](Run& run) { return run.kernel().gives(backward::dv); },
     .check =
         [](Run& run) {
           const Launch launch = run.launch(run.the_case(), with_other_values(run));
           return check_agree(
               run.kernel(), launch.outputs, run.base().outputs, agreement_of(run, {}),
               "V, O and dLSE became others, and dV changed",
               [](OutputIndex output, auto, auto, auto, auto) { return output == backward::dv; });
         }}};

}  // namespace law_values_do_not_enter_dv
}  // namespace attest
