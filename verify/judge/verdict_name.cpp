// Apart from the judging, for programs that only read and write verdicts.
#include <array>

#include "verify/judge/verdict.hpp"

namespace attest {

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 7> names{
      "passed", "failed", "vacuous", "unsupported", "crashed", "timed_out", "inconclusive"};
  return names[static_cast<std::size_t>(verdict)];
}

}  // namespace attest
