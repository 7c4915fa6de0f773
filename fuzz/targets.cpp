#include "fuzz/targets.hpp"

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/inputs/captured_layers.hpp"
#include "core/inputs/safetensors.hpp"
#include "core/records/case.hpp"
#include "core/run/tuning_table.hpp"
#include "experiments/study/language/parse_study.hpp"
#include "fuzz/contract.hpp"
#include "verify/campaign/counterexample.hpp"

namespace attest {

/// A case that is read can be written, and read again as the same one.
void fuzz_case(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] {
    const Case c = case_from_json(text_of(bytes), "fuzz");
    require(case_from_json(to_json(c), "fuzz") == c, "a case survives writing and reading");
    require(!to_string(c).empty() && !file_key(c).empty(), "a case has a name");
  });
}

void fuzz_counterexample(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] { (void)counterexample_from_json(text_of(bytes), "fuzz"); });
}

/// A file that is accepted has values for each of its tensors; then its layers are taken out.
void fuzz_safetensors(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] {
    const auto raw = std::as_bytes(bytes);
    const Safetensors file = Safetensors::from_bytes({raw.begin(), raw.end()}, "fuzz");
    for (const SafetensorsEntry& entry : file.entries()) {
      require(std::ssize(file.values(entry)) == entry.size(), "a tensor has all of its values");
    }
    for (const CapturedLayer& layer : captured_layers(file)) {
      require(layer.q.size() > 0 && layer.k.size() == layer.v.size(), "layers are whole");
    }
  });
}

/// A table that is read can be written, and read again as the same one.
void fuzz_tuning_table(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] {
    const TuningTable table = tuning_table_from_json(text_of(bytes), "fuzz");
    require(tuning_table_from_json(to_json(table), "fuzz") == table,
            "a table survives writing and reading");
  });
}

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
