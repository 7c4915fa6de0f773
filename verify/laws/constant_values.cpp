#include <algorithm>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_constant_values {

/// All keys of a head take the scales of its first one; columns keep theirs.
void share_scales(Tensor<float>& scales) {
  const Shape shape = scales.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 1; n < shape[2]; ++n) {
        std::ranges::copy(scales.row(b, h, 0), scales.row(b, h, n).begin());
      }
    }
  }
}

/// V constant over the keys of a head, different between heads.
Inputs with_constant_values(const Run& run, Inputs inputs) {
  const Problem& problem = run.problem();
  const Shape shape = inputs[forward::v].shape();
  const ElementType format = (*problem.operation)[forward::v].format(problem);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      const auto index = static_cast<std::uint64_t>(b * shape[1] + h);
      const double value =
          1.0 + random_uniform(run.the_case().inputs.seed, stream_constant_value, index);
      const auto rounded = static_cast<float>(round_to(format, value));
      for (std::int64_t n = 0; n < shape[2]; ++n)
        std::ranges::fill(inputs[forward::v].row(b, h, n), rounded);
    }
  }
  if (problem.operation == &quantised_operation) share_scales(inputs[quantised::v_scale]);
  return inputs;
}

const LawRegistration registration{
    {.name = "constant_values",
     .statement =
         "if V is one constant per head, times the scale of its column where V is of codes, "
         "O is that constant whatever the logits, within "
         "the roundings of the weighted mean, and LSE is within its bound",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation, &quantised_operation},
     .needs_own_values = true,
     .applies = {},
     .check = [](Run& run) {
       const Inputs inputs = with_constant_values(run, run.inputs());
       const Answer answer = run.answer_to(run.problem(), run.the_case().plan, inputs);
       const Launch launch = run.launch(run.the_case(), inputs);
       const Check o = check_of(
           "O",
           compare(launch.outputs[forward::o], answer[forward::o].value, answer[forward::o].bound),
           "V is constant, but O is not that constant");
       if (o.status == Check::Status::failed) return o;
       const Check lse = check_output(run.kernel(), forward::lse, launch.outputs, answer,
                                      "V is constant, and LSE is outside its error bound");
       return lse.status == Check::Status::failed ? lse : o;
     }}};

}  // namespace law_constant_values
}  // namespace attest
