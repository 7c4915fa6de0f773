#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{
    statistic_law(Statistic::o_row_rms,
                  "no row of O errs by more, in the mean square, than its roundings add up to",
                  "a row of O errs more than its roundings explain")};

}  // namespace
}  // namespace attest
