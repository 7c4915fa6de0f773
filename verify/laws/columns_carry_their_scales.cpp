#include <algorithm>

#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_columns_carry_their_scales {

/// Every row in reverse.
template <typename T>
Tensor<T> reversed(Tensor<T> tensor) {
  const auto width = static_cast<std::size_t>(tensor.shape()[3]);
  for (std::size_t first = 0; width > 0 && first < tensor.values().size(); first += width) {
    std::ranges::reverse(tensor.values().subspan(first, width));
  }
  return tensor;
}

const LawRegistration registration{
    {.name = "columns_carry_their_scales",
     .statement = "the columns of V in reverse, with their scales, give those of O in reverse bit "
                  "for bit, and the same LSE",
     .cost = Law::Cost::more_launches,
     .operations = {&quantised_operation},
     .needs_own_values = true,
     .applies = [](Run& run) { return run.problem().output_dim() > 1; },
     .check =
         [](Run& run) {
           Inputs inputs = run.inputs();
           inputs[quantised::v] = reversed(inputs[quantised::v]);
           // Scales that are none of columns are one number a row.
           inputs[quantised::v_scale] = reversed(inputs[quantised::v_scale]);
           const Launch launch = run.launch(run.the_case(), inputs);
           Outputs want = run.base().outputs;
           want[quantised::o] = reversed(want[quantised::o]);
           const auto moved_answer = [&] {
             Answer answer = run.answer();
             answer[quantised::o].bound = reversed(answer[quantised::o].bound);
             return answer;
           };
           return check_agree(run.kernel(), launch.outputs, want,
                              agreement_of(run, {}, moved_answer),
                              "columns of V changed places with their scales, and those of O did "
                              "not");
         }}};

}  // namespace law_columns_carry_their_scales
}  // namespace attest
