#include "core/inputs/random.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_unit_values_show_weights {

/// The value of key j is 1 in column j + first of its head, around the end, and 0 elsewhere.
Inputs with_unit_values(const Run& run, Inputs inputs) {
  const Shape shape = inputs[quantised::v].shape();
  Tensor<float> units(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      const auto head = static_cast<std::uint64_t>(b * shape[1] + h);
      const std::int64_t first =
          random_below(run.the_case().inputs.seed, stream_unit_values, head, shape[3]);
      for (std::int64_t n = 0; n < shape[2]; ++n) units.at(b, h, n, (n + first) % shape[3]) = 1;
    }
  }
  inputs[quantised::v] = std::move(units);
  return inputs;
}

const LawRegistration registration{
    {.name = "unit_values_show_weights",
     .statement = "where the value of each key is a unit vector, O is the weights times the scales "
                  "of V, each within its bound: a bound of one weight, not of a sum",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&quantised_operation},
     .needs_own_values = true,
     .applies = [](Run& run) { return run.problem().key_len > 0; },
     .check =
         [](Run& run) {
           const Inputs inputs = with_unit_values(run, run.inputs());
           const Launch launch = run.launch(run.the_case(), inputs);
           return check_answer(run.kernel(), launch.outputs,
                               run.answer_to(run.problem(), run.the_case().plan, inputs),
                               "values are unit vectors, and O is not the weights");
         }}};

}  // namespace law_unit_values_show_weights
}  // namespace attest
