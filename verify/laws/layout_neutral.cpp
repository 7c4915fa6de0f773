#include "verify/judge/agreement.hpp"

namespace attest {
namespace {

const LawRegistration registration{
    {.name = "layout_neutral",
     .statement = "strides, gaps and base offsets change no bit of the answer",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           Case contiguous = run.the_case();
           contiguous.layouts = {};
           return contiguous != run.the_case() && !why_unsupported(run.kernel(), contiguous);
         },
     .check =
         [](Run& run) {
           Case contiguous = run.the_case();
           contiguous.layouts = {};
           return check_agree(run.kernel(), run.base().outputs,
                              run.launch(contiguous, run.inputs()).outputs,
                              agreement_of(run, {.addresses = true}),
                              "the strided run differs from the contiguous one");
         }}};

}  // namespace
}  // namespace attest
