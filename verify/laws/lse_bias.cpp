#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(Statistic::lse_bias,
                                                 "the errors of LSE have no preferred sign",
                                                 "the errors of LSE have one sign")};

}  // namespace
}  // namespace attest
