#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/combine.hpp"
#include "verify/judge/combine_cases.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_empty_part_changes_nothing {

const LawRegistration registration{
    {.name = "empty_part_changes_nothing",
     .statement =
         "a part that saw no key, LSE_p = -infinity, changes nothing, whatever its O_p holds",
     .cost = Law::Cost::more_launches,
     .operations = {&combine_operation},
     .applies = [](Run& run) { return can_have_parts(run, run.problem().parts + 1); },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const Case c = with_parts(run, p.parts + 1);
           const std::int64_t empty =
               random_below(run.the_case().inputs.seed, stream_empty_part, 0, p.parts + 1);
           std::vector<std::int64_t> parts;
           for (std::int64_t part = 0; part <= p.parts; ++part) {
             parts.push_back(part < empty ? part : part - 1);
           }
           parts[static_cast<std::size_t>(empty)] = 0;
           Inputs inputs = with_selected_parts(run, parts, [](float x) { return x; });
           fill_part(c.problem, inputs, empty, -std::numeric_limits<float>::infinity(),
                     std::numeric_limits<float>::quiet_NaN());
           const Launch launch = run.launch(c, inputs);
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              within_bounds(run.answer(), run.answer()),
                              "a part that saw no key changed the result");
         }}};

}  // namespace law_empty_part_changes_nothing
}  // namespace attest
