// Gates and residuals that come to none, and what they leave alone.
#include "core/operations/forward.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace epilogue_variations {

/// The case with a tensor that comes to nothing, against the case without the tensor.
Variation against_none(const Run& run, InputIndex input, float nothing,
                       void (*take_away)(Problem&)) {
  Case without = run.the_case();
  take_away(without.problem);
  const auto with_all = [input](const Problem& problem, float value) {
    return [=](Inputs from) {
      from[input] = Tensor<float>(forward_operation[input].shape(problem), value);
      return from;
    };
  };
  return {.call = {run.the_case(), with_all(run.problem(), nothing)},
          .reference = OtherCall{without, with_all(without.problem, 0)}};
}

Varied with_gate_of_one(Run& run, const LawDraws&) {
  if (run.problem().gate == OutputGate::none) return {};
  return against_none(run, forward::gate, 1, [](Problem& p) { p.gate = OutputGate::none; });
}

/// -0, to which 0 may be added as well as -0.
Varied with_residual_of_minus_zero(Run& run, const LawDraws&) {
  if (run.problem().residual == Residual::none) return {};
  return against_none(run, forward::residual, -0.0F,
                      [](Problem& p) { p.residual = Residual::none; });
}

Varied lse_without_epilogue(Run& run, const LawDraws&) {
  if (!has_epilogue(run.problem()) || !run.kernel().gives(forward::lse)) return {};
  Case without = run.the_case();
  take_away_epilogue(without.problem);
  const auto inputs = [p = without.problem](Inputs from) {
    for (const InputIndex input : {forward::gate, forward::residual}) {
      from[input] = Tensor<float>(forward_operation[input].shape(p));
    }
    return from;
  };
  return Variation{.call = {without, inputs},
                   .row_owed = [](OutputIndex output, const RowPlace& row) {
                     return output == forward::lse ? std::optional(row) : std::nullopt;
                   }};
}

const std::vector<const Operation*> forward_only{&forward_operation};

const VariationLaws registration{{
    {.name = "gate_of_one_is_none",
     .statement = "a gate of 1 changes no bit against none",
     .operations = forward_only,
     .same_bits_but_for = Differences{},
     .failure = "a gate of 1 gives another answer than none",
     .vary = with_gate_of_one},
    {.name = "residual_of_minus_zero_is_none",
     .statement = "a residual of -0 changes no bit against none",
     .operations = forward_only,
     .same_bits_but_for = Differences{},
     .failure = "a residual of -0 gives another answer than none",
     .vary = with_residual_of_minus_zero},
    {.name = "epilogues_leave_lse",
     .statement = "a gate and a residual change no bit of LSE",
     .operations = forward_only,
     .same_bits_but_for = Differences{},
     .failure = "a gate or a residual changed LSE",
     .vary = lse_without_epilogue},
}};

}  // namespace epilogue_variations
}  // namespace attest
