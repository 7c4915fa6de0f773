#include "verify/judge/agreement.hpp"

namespace attest {
namespace {

const LawRegistration registration{
    {.name = "lse_within_bound",
     .statement = "every LSE is within the bound that follows from the declared roundings",
     .layer = Layer::bound,
     .applies = [](Run& run) { return run.kernel().has_lse; },
     .check =
         [](Run& run) {
           return check_lse(run.kernel(), run.base().outputs, run.answer(),
                            "LSE is outside its error bound");
         }}};

}  // namespace
}  // namespace attest
