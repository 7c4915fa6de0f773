// The law that a KernelError breaks, whichever law was being checked when it was thrown
// (verify_case). Here only what every case asks of a kernel.
#include "verify/judge/law.hpp"

namespace attest {
namespace law_returns_no_error {

const LawRegistration registration{
    {.name = std::string(error_law),
     .statement = "the kernel runs, and says how it rounds, without an error of its own",
     .applies = {},
     .check = [](Run& run) {
       (void)run.base();
       (void)run.kernel().precision(run.problem(), run.the_case().plan);
       return Check::passed();
     }}};

}  // namespace law_returns_no_error
}  // namespace attest
