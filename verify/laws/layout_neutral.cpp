#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_layout_neutral {

/// Contiguous, and without pages where the kernel does without.
Case contiguous_case(const Run& run) {
  Case c = run.the_case();
  c.layouts = fitted(run.kernel().layout_needs, c.problem, {});
  return c;
}

const LawRegistration registration{
    {.name = "layout_neutral",
     .statement = "strides, gaps, base offsets and pages change no bit of the answer",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           const Case contiguous = contiguous_case(run);
           return contiguous != run.the_case() && !why_unsupported(run.kernel(), contiguous);
         },
     .check =
         [](Run& run) {
           const Case contiguous = contiguous_case(run);
           return check_agree(run.kernel(), run.base().outputs,
                              run.launch(contiguous, run.inputs()).outputs,
                              agreement_of(run, {.addresses = true, .sharing = true}),
                              "the strided run differs from the contiguous one");
         }}};

}  // namespace law_layout_neutral
}  // namespace attest
