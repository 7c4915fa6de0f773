#include <string>

#include "core/base/error.hpp"
#include "experiments/study/language/spec.hpp"
#include "fuzz/contract.hpp"
#include "fuzz/targets.hpp"

namespace attest {

/// A study or complaints, each with a place; never both, never an exception.
void fuzz_study(std::span<const std::uint8_t> bytes) {
  const ParsedStudy parsed = parse_study(text_of(bytes), "fuzz");
  require(parsed.spec.has_value() == parsed.errors.empty(), "a study or what is wrong with it");
  for (const StudyError& error : parsed.errors) {
    require(error.place.line >= 1 && error.place.column >= 1, "a complaint has a place");
    returns_or_complains([&] { throw InvalidInput(to_string(error, "fuzz")); });
  }
  if (!parsed.spec) return;
  require(!parsed.spec->kernels.empty() && !parsed.spec->question.empty(), "needed keys are there");
  require(
      !parsed.spec->problem.empty() && !parsed.spec->plan.empty() && !parsed.spec->seeds.empty(),
      "grids and seeds are never empty");
}

}  // namespace attest
