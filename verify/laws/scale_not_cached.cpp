#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_scale_not_cached {

/// The case with another scale, and another softcap where the kernel has one.
Case with_other_scale(const Run& run) {
  Case c = run.the_case();
  const float scale = c.problem.scale;
  c.problem.scale = scale == 0 ? default_scale(c.problem.head_dim) : scale * 0.75F;
  if (run.kernel().features.softcap) {
    c.problem.softcap = c.problem.softcap == 0 ? 2.0F : c.problem.softcap * 0.75F;
  }
  return c;
}

const LawRegistration registration{
    {.name = "scale_not_cached",
     .statement =
         "another scale, or softcap, in the same process gives its own answer, and the first one "
         "its own bits again",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies =
         [](Run& run) {
           const Case other = with_other_scale(run);
           return !why_unsupported(run.kernel(), other);
         },
     .check =
         [](Run& run) {
           const Case other = with_other_scale(run);
           const Outputs& base = run.base().outputs;
           const Launch launch = run.launch(other, run.inputs());
           const Check again = check_agree(
               run.kernel(), run.launch(run.the_case(), run.inputs()).outputs, base,
               agreement_of(run, {}),
               "after a launch with another scale, the first scale gives another answer");
           if (again.status == Check::Status::failed) return again;
           const Answer answer = run.answer_to(other.problem, other.plan, run.inputs());
           const std::string failure = "the second scale in a process gives another answer";
           const Check lse =
               check_output(run.kernel(), forward::lse, launch.outputs, answer, failure);
           if (lse.status == Check::Status::failed) return lse;
           return check_output(run.kernel(), forward::o, launch.outputs, answer, failure);
         }}};

}  // namespace law_scale_not_cached
}  // namespace attest
