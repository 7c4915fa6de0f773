#include <algorithm>
#include <limits>

#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_earlier_launch_irrelevant {

Tensor<float> all_nan(const Tensor<float>& like) {
  return Tensor<float>(like.shape(), std::numeric_limits<float>::quiet_NaN());
}

const LawRegistration registration{
    {.name = "earlier_launch_irrelevant",
     .statement = "after a launch whose results were all NaN, the case has its bits again",
     .cost = Law::Cost::more_launches,
     .applies = {},
     .check = [](Run& run) {
       const Outputs& base = run.base().outputs;
       const Inputs& in = run.inputs();
       (void)run.launch(run.the_case(), mapped(in, all_nan));
       return check_agree(run.kernel(), run.launch(run.the_case(), in).outputs, base,
                          agreement_of(run, {}),
                          "a launch that made only NaN changed the next one");
     }}};

}  // namespace law_earlier_launch_irrelevant
}  // namespace attest
