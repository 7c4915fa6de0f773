#include "verify/judge/law.hpp"

namespace attest {
namespace law_floating_point_mode_kept {

const LawRegistration registration{
    {.name = "floating_point_mode_kept",
     .statement = "the launch leaves rounding, flushing of denormals and exception masks of the "
                  "calling thread as they were",
     .applies = {},
     .check = [](Run& run) {
       const std::string& changed = run.base().changed_mode;
       return changed.empty() ? Check::passed() : Check::failed("after the launch " + changed);
     }}};

}  // namespace law_floating_point_mode_kept
}  // namespace attest
