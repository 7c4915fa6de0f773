#include <algorithm>

#include "core/operations/backward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_absent_lse_gradient_is_zero {

Case without_lse_gradient(const Run& run) {
  Case c = run.the_case();
  c.problem.lse_gradient = LseGradient::zero;
  return c;
}

Check check_absent(Run& run) {
  const Case absent = without_lse_gradient(run);
  Inputs inputs = run.inputs();
  std::ranges::fill(inputs[backward::d_lse].values(), 0.0F);
  const Launch of_zeros = run.launch(run.the_case(), inputs);
  inputs[backward::d_lse] =
      Tensor<float>(backward_operation[backward::d_lse].shape(absent.problem));
  const Launch of_none = run.launch(absent, inputs);
  return check_agree(
      run.kernel(), of_zeros.outputs, of_none.outputs,
      agreement_of(run, {}, [&] { return run.answer_to(absent.problem, absent.plan, inputs); }),
      "a dLSE of zeros gives another gradient than none");
}

const LawRegistration registration{{.name = "absent_lse_gradient_is_zero",
                                    .statement = "a dLSE of zeros changes no bit against none",
                                    .cost = Law::Cost::more_launches,
                                    .operations = {&backward_operation},
                                    .applies =
                                        [](Run& run) {
                                          return run.problem().lse_gradient == LseGradient::given &&
                                                 !why_unsupported(run.kernel(),
                                                                  without_lse_gradient(run));
                                        },
                                    .check = check_absent}};

}  // namespace law_absent_lse_gradient_is_zero
}  // namespace attest
