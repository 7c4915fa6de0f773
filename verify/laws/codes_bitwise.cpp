#include <limits>

#include "core/operations/quantise.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_codes_bitwise {

/// The answer is made of numbers of fp32, and its bound is 0.
Outputs defined(const Answer& answer) {
  Outputs outputs;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const OutputIndex output{i};
    const Tensor<double>& from = answer[output].value;
    outputs[output] = Tensor<float>(from.shape());
    for (std::size_t at = 0; at < from.values().size(); ++at) {
      outputs[output].values()[at] = static_cast<float>(from.values()[at]);
    }
  }
  return outputs;
}

const LawRegistration registration{
    {.name = "codes_bitwise",
     .statement = "every code and every scale has the bits that the definition of the quantiser "
                  "gives it; of a NaN any code of NaN will do",
     .operations = {&quantise_operation},
     .applies = {},
     .check = [](Run& run) {
       return check_agree(run.kernel(), run.base().outputs, defined(run.answer()), {},
                          "a code or a scale is not that of the definition");
     }}};

}  // namespace law_codes_bitwise
}  // namespace attest
