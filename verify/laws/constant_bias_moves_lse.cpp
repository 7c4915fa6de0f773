#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_constant_bias_moves_lse {

/// What is added to every bias.
constexpr float step = 4;

/// Multiples of 1/8 in [-4, 4], to which fp32 adds `step` exactly, and keys that were hidden stay
/// so. A sink, which would not move along, is none.
Inputs with_coarse_bias(const Run& run, Inputs inputs, float added) {
  std::uint64_t index = 0;
  for (float& x : inputs[forward::bias].values()) {
    const std::int64_t eighths =
        random_below(run.the_case().inputs.seed, stream_constant_bias, index++, 65) - 32;
    if (std::isfinite(x)) x = static_cast<float>(eighths) / 8 + added;
  }
  if (run.problem().sinks != Sinks::none) {
    for (float& sink : inputs[forward::sinks].values()) {
      sink = -std::numeric_limits<float>::infinity();
    }
  }
  return inputs;
}

Check check_moved(Run& run) {
  const auto& inputs = run.inputs();
  const Inputs low = with_coarse_bias(run, inputs, 0), high = with_coarse_bias(run, inputs, step);
  const Answer below = run.answer_to(run.problem(), run.the_case().plan, low);
  const Answer above = run.answer_to(run.problem(), run.the_case().plan, high);
  Outputs want = run.launch(run.the_case(), low).outputs;
  const Outputs got = run.launch(run.the_case(), high).outputs;
  for (const OutputIndex output : {forward::o, forward::lse}) {
    if (!run.kernel().gives(output)) continue;
    Tensor<double> moved(want[output].shape()), allowed = below[output].bound;
    for (std::size_t i = 0; i < moved.values().size(); ++i) {
      moved.values()[i] = static_cast<double>(want[output].values()[i]);
      if (output == forward::lse) moved.values()[i] += static_cast<double>(step);
      allowed.values()[i] += above[output].bound.values()[i];
    }
    const Check check =
        check_of(std::string(forward_operation[output].label), compare(got[output], moved, allowed),
                 output == forward::lse ? "a number added to the bias is not what LSE moved by"
                                        : "a number added to the bias changed O");
    if (check.status == Check::Status::failed) return check;
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "constant_bias_moves_lse",
     .statement =
         "a number added to every element of a bias leaves O as it is and is added to LSE, "
         "within the sum of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies = [](Run& run) { return run.problem().bias != Bias::none; },
     .check = check_moved}};

}  // namespace law_constant_bias_moves_lse
}  // namespace attest
