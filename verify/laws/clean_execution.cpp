#include <fmt/format.h>

#include "verify/judge/law.hpp"

namespace attest {
namespace law_clean_execution {

const LawRegistration registration{
    {.name = "clean_execution",
     .statement = "the SIMT executor sees no race, no access out of bounds, no uninitialised read, "
                  "no divergent barrier",
     .applies = [](Run& run) { return run.kernel().executor == Executor::simt; },
     .check =
         [](Run& run) {
           const std::vector<Finding>& findings = run.base().findings;
           if (findings.empty()) return Check::passed();
           return Check::failed(
               fmt::format("{}: {}", findings.front().kind, findings.front().message));
         }}};

}  // namespace law_clean_execution
}  // namespace attest
