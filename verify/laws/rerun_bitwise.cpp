#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_rerun_bitwise {

const LawRegistration registration{
    {.name = "rerun_bitwise",
     .statement = "a second launch, in another order of blocks and threads and with buffers that "
                  "end elsewhere, gives the same bits",
     .cost = Law::Cost::more_launches,
     .applies = {},
     .check = [](Run& run) {
       Case again = run.the_case();
       // Another seed also lets buffers end elsewhere.
       if (!run.kernel().depends_on_alignment) again.schedule_seed = ~again.schedule_seed;
       return check_agree(run.kernel(), run.launch(again, run.inputs()).outputs, run.base().outputs,
                          agreement_of(run, {}), "a rerun gave another answer");
     }}};

}  // namespace law_rerun_bitwise
}  // namespace attest
