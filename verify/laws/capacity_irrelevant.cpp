#include "core/inputs/random.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_capacity_irrelevant {

/// As many keys as the kernel is told there may be.
std::int64_t capacity_of(const Run& run) {
  return run.problem().key_len + random_below(run.the_case().inputs.seed, stream_capacity, 0, 700) +
         1;
}

const LawRegistration registration{
    {.name = "capacity_irrelevant",
     .statement = "room for more keys than there are changes no bit where lengths are read on the "
                  "device: the largest length, the grid and the workspace are upper bounds",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation, &quantised_operation},
     .applies =
         [](Run& run) {
           const bool has_arrays =
               run.problem().length_seed != 0 || run.the_case().layouts.paging.is_used();
           Problem larger = run.problem();
           larger.key_len = capacity_of(run);
           return run.kernel().reads_lengths && has_arrays &&
                  !why_unsupported(run.kernel(), larger, run.the_case().plan);
         },
     .check =
         [](Run& run) {
           const Launch launch =
               run.launch(run.the_case(), run.inputs(), {.capacity = capacity_of(run)});
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              agreement_of(run, {}), "room for more keys changed the answer");
         }}};

}  // namespace law_capacity_irrelevant
}  // namespace attest
