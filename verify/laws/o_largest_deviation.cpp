#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::o_largest, "no element of O errs by many times what its roundings usually add up to",
    "an element of O errs far more than its roundings explain")};

}  // namespace
}  // namespace attest
