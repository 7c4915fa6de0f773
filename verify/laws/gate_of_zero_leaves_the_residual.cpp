#include <algorithm>
#include <cmath>

#include "core/operations/forward.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace law_gate_of_zero_leaves_the_residual {

const LawRegistration registration{
    {.name = "gate_of_zero_leaves_the_residual",
     .statement = "a gate of 0 makes O its residual, or 0, exactly",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation},
     .applies = [](Run& run) { return run.problem().gate == OutputGate::given; },
     .check =
         [](Run& run) {
           const Problem& problem = run.problem();
           Inputs inputs = run.inputs();
           std::ranges::fill(inputs[forward::gate].values(), 0.0F);
           const Launch launch = run.launch(run.the_case(), inputs);
           return check_rows(problem, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
             const bool exists = n < problem.query_len_of(b);
             for (std::int64_t d = 0; exists && d < problem.output_dim(); ++d) {
               // 0 times what can overflow may be NaN.
               if (!std::isfinite(run.answer()[forward::o].bound.at(b, h, n, d))) continue;
               const float want = forward::residual_of(problem, inputs, b, h, n, d);
               const float got = launch.outputs[forward::o].at(b, h, n, d);
               if (got == want) continue;
               return Check::failed_at("O", {.index = {b, h, n, d}, .got = got, .want = want},
                                       "a gate of 0 leaves something of O, or not the residual");
             }
             return Check::passed();
           });
         }}};

}  // namespace law_gate_of_zero_leaves_the_residual
}  // namespace attest
