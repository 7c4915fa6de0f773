#include <bit>
#include <cmath>

#include "core/inputs/random.hpp"
#include "core/operations/combine.hpp"
#include "verify/judge/combine_cases.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_copies_of_a_part_give_it_back {

// Sums of up to 16 numbers of 8 significant bits are exact in any order and with any roundings.
constexpr std::int64_t most_copies = 16;

const LawRegistration registration{
    {.name = "copies_of_a_part_give_it_back",
     .statement = "merging 2^k copies of one part gives its O back bit for bit",
     .cost = Law::Cost::more_launches,
     .operations = {&combine_operation},
     .applies = [](Run& run) { return merges_exactly(run) && can_have_parts(run, most_copies); },
     .check =
         [](Run& run) {
           const std::int64_t copies = std::int64_t{2} << random_below(run.the_case().inputs.seed,
                                                                       stream_copied_part, 0, 4);
           const Case c = with_parts(run, copies);
           const Inputs inputs = with_selected_parts(
               run.problem(), run.inputs(),
               std::vector<std::int64_t>(static_cast<std::size_t>(copies), 0),
               [](float x) { return static_cast<float>(round_to(ElementType::bf16, x)); });
           const Launch launch = run.launch(c, inputs);
           return check_gives_first_part(run, c, inputs, launch.outputs,
                                         "copies of one part merge to another O");
         }}};

}  // namespace law_copies_of_a_part_give_it_back
}  // namespace attest
