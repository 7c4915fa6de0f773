#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::lse_largest, "no LSE errs by many times what its roundings usually add up to",
    "an LSE errs far more than its roundings explain")};

}  // namespace
}  // namespace attest
