#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::lse_rms, "LSE errs no more, in the mean square, than its roundings add up to",
    "LSE errs more than its roundings explain")};

}  // namespace
}  // namespace attest
