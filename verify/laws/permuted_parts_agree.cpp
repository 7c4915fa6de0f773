#include "core/operations/combine.hpp"
#include "verify/judge/combine_cases.hpp"

namespace attest {
namespace law_permuted_parts_agree {

const LawRegistration registration{
    {.name = "permuted_parts_agree",
     .statement = "the parts in reverse order give the same result within both bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&combine_operation},
     .applies = [](Run& run) { return run.problem().parts > 1; },
     .check =
         [](Run& run) {
           std::vector<std::int64_t> parts;
           for (std::int64_t part = run.problem().parts; part-- > 0;) parts.push_back(part);
           const Inputs inputs = with_selected_parts(run, parts, [](float x) { return x; });
           return check_agree(run.kernel(), run.launch(run.the_case(), inputs).outputs,
                              run.base().outputs, within_bounds(run.answer(), run.answer()),
                              "the parts in reverse order give another result");
         }}};

}  // namespace law_permuted_parts_agree
}  // namespace attest
