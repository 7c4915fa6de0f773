#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::o_rms, "O errs no more, in the mean square, than its roundings add up to",
    "O errs more than its roundings explain")};

}  // namespace
}  // namespace attest
