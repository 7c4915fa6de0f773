#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/run/launch_image.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_leftovers_irrelevant {

/// Inputs of the same family from another seed.
Inputs other_inputs(const Run& run) {
  InputSpec spec = run.the_case().inputs;
  spec.seed = random_bits(spec.seed, stream_other_values, 0);
  return make_inputs(run.problem(), spec);
}

const LawRegistration registration{
    {.name = "leftovers_irrelevant",
     .statement = "a workspace that holds what a launch on other inputs left there gives the bits "
                  "of one that holds NaN",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           const Case& c = run.the_case();
           return extra_memory(run.kernel(), c.problem, c.plan).workspace > 0;
         },
     .check =
         [](Run& run) {
           const Inputs others = other_inputs(run);
           const std::vector<Outputs> outputs =
               run.launch_in_turn({{run.the_case(), others}, {run.the_case(), run.inputs()}}, true);
           return check_agree(run.kernel(), outputs.back(), run.base().outputs,
                              agreement_of(run, {}),
                              "what another launch left in the workspace changed the answer");
         }}};

}  // namespace law_leftovers_irrelevant
}  // namespace attest
