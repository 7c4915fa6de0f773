#include "verify/property.hpp"

namespace attest {
namespace {

const PropertyRegistration registration{
    {.name = "rerun_bitwise",
     .statement = "a second launch, in another order of blocks and threads, gives the same bits",
     .cost = Property::Cost::more_launches,
     .applies = [](Run& run) { return run.kernel().is_deterministic; },
     .check =
         [](Run& run) {
           Case again = run.the_case();
           again.schedule_seed = ~again.schedule_seed;
           return check_same_bits_or_both_nan(run.launch(again, run.inputs()).outputs,
                                              run.base().outputs, "a rerun gave other bits");
         }}};

}  // namespace
}  // namespace attest
