#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::o_gain, "O is neither too long nor too short: its errors do not point along O",
    "O is too long or too short throughout: truncated weights or a wrong normaliser")};

}  // namespace
}  // namespace attest
