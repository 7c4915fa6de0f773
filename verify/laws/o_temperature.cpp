#include "verify/judge/statistic_law.hpp"

namespace attest {
namespace {

const LawRegistration registration{
    statistic_law(Statistic::o_temperature,
                  "the errors of O do not point where a slightly wrong scale would move it",
                  "O is that of a slightly different scale")};

}  // namespace
}  // namespace attest
