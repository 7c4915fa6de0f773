#include <algorithm>
#include <limits>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace law_absent_sinks_have_no_gradient {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// LSE of rows that see no key is -infinity, too, as a forward pass gives it.
Inputs without_sinks(Run& run) {
  const Problem& p = run.problem();
  Inputs inputs = run.inputs();
  std::ranges::fill(inputs[backward::sinks].values(), minus_infinity);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        if (!forward::keys_of_row(p, inputs, b, h, n).empty()) continue;
        inputs[backward::lse].at(b, h, n, 0) = minus_infinity;
      }
    }
  }
  return inputs;
}

const LawRegistration registration{
    {.name = "absent_sinks_have_no_gradient",
     .statement = "sinks of -infinity have the gradient 0, though rows see no key and have an LSE "
                  "of -infinity, too",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies =
         [](Run& run) {
           return run.problem().sinks != Sinks::none && run.kernel().gives(backward::d_sinks);
         },
     .check =
         [](Run& run) {
           const Launch launch = run.launch(run.the_case(), without_sinks(run));
           const Tensor<float>& got = launch.outputs[backward::d_sinks];
           const Tensor<double> zeros(got.shape());
           return check_of(std::string(backward_operation[backward::d_sinks].label),
                           compare(got, zeros, zeros),
                           "all sinks are -infinity, and this gradient is not 0");
         }}};

}  // namespace law_absent_sinks_have_no_gradient
}  // namespace attest
