#include "verify/judge/law.hpp"

namespace attest {
namespace {

const LawRegistration registration{
    {.name = "within_bound",
     .statement = "every element of O is within the bound that follows from the declared roundings",
     .layer = Layer::bound,
     .applies = {},
     .check = [](Run& run) {
       const Answer& answer = run.answer();
       return check_of("O", compare(run.base().outputs.o, answer.o, answer.o_bound),
                       "O is outside its error bound");
     }}};

}  // namespace
}  // namespace attest
