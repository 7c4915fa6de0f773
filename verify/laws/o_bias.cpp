#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::o_bias, "the errors of O have no preferred sign", "the errors of O have one sign")};

}  // namespace
}  // namespace attest
