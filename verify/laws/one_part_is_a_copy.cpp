#include "core/operations/combine.hpp"
#include "verify/judge/combine_cases.hpp"

namespace attest {
namespace law_one_part_is_a_copy {

const LawRegistration registration{
    {.name = "one_part_is_a_copy",
     .statement = "merging one part copies it: O is O_1 in O's format, LSE is LSE_1, bit for bit",
     .cost = Law::Cost::more_launches,
     .operations = {&combine_operation},
     .applies = [](Run& run) { return merges_exactly(run) && can_have_parts(run, 1); },
     .check =
         [](Run& run) {
           const Case c = with_parts(run, 1);
           const Inputs inputs =
               with_selected_parts(run.problem(), run.inputs(), {0}, [](float x) { return x; });
           const Launch launch = run.launch(c, inputs);
           const Check o = check_gives_first_part(run, c, inputs, launch.outputs,
                                                  "one part merges to another O");
           if (o.status == Check::Status::failed) return o;
           const Outputs want{launch.outputs[combine::o], inputs[combine::partial_lse]};
           return check_agree(run.kernel(), launch.outputs, want, {},
                              "one part merges to another LSE");
         }}};

}  // namespace law_one_part_is_a_copy
}  // namespace attest
