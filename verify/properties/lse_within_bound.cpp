#include "verify/property.hpp"

namespace attest {
namespace {

const PropertyRegistration registration{
    {.name = "lse_within_bound",
     .statement = "every LSE is within the bound that follows from the declared roundings",
     .layer = Layer::bound,
     .applies = {},
     .check = [](Run& run) {
       const Answer& answer = run.answer();
       return check_of("LSE", compare(run.base().outputs.lse, answer.lse, answer.lse_bound),
                       "LSE is outside its error bound");
     }}};

}  // namespace
}  // namespace attest
