#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{statistic_law(
    Statistic::o_row_gain, "no row of O is longer or shorter than its roundings explain",
    "rows of O are too long or too short by turns: a coarse normaliser")};

}  // namespace
}  // namespace attest
