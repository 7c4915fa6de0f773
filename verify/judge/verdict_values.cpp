// Apart from the judging, for programs that only read and write verdicts.
#include <algorithm>
#include <array>
#include <string>

#include "verify/judge/verdict.hpp"

namespace attest {

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 7> names{
      "passed", "failed", "vacuous", "unsupported", "crashed", "timed_out", "inconclusive"};
  return names[static_cast<std::size_t>(verdict)];
}

double WorstOverBound::of(std::string_view output) const {
  const auto at = worst_.find(output);
  return at == worst_.end() ? 0 : at->second;
}

void WorstOverBound::raise(std::string_view output, double ratio) {
  double& worst = worst_[std::string(output)];
  worst = std::max(worst, ratio);
}

void WorstOverBound::raise(const WorstOverBound& other) {
  for (const auto& [output, ratio] : other) raise(output, ratio);
}

}  // namespace attest
