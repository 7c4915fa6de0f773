#include <algorithm>
#include <cmath>

#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_cancelling_residual {

/// The inputs with a residual that is what the rest of O comes to, negative and rounded.
Inputs with_cancelling_residual(Run& run) {
  const Problem& problem = run.problem();
  Inputs inputs = run.inputs();
  const auto residual = inputs[forward::residual].values();
  std::ranges::fill(residual, 0.0F);
  const Answer rest = run.answer_to(problem, run.the_case().plan, inputs);
  const double most = format_of(problem.element_type).max_finite;
  const auto values = rest[forward::o].value.values();
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const double x = std::isfinite(values[i]) ? std::clamp(values[i], -most, most) : 0.0;
    residual[i] = -static_cast<float>(round_to(problem.element_type, x));
  }
  return inputs;
}

const LawRegistration registration{
    {.name = "cancelling_residual",
     .statement = "a residual that cancels O, up to the rounding of its format, leaves what was "
                  "rounded, within the bound",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies = [](Run& run) { return run.problem().residual == Residual::given; },
     .check =
         [](Run& run) {
           const Inputs inputs = with_cancelling_residual(run);
           const Answer answer = run.answer_to(run.problem(), run.the_case().plan, inputs);
           return check_output(
               run.kernel(), forward::o, run.launch(run.the_case(), inputs).outputs, answer,
               "the residual cancels O, and what remains is outside its error bound");
         }}};

}  // namespace law_cancelling_residual
}  // namespace attest
