#include "experiments/study/outcome.hpp"

#include <limits>

namespace attest {

double StudyOutcome::overhead() const {
  if (!(spent.kernels > 0)) return std::numeric_limits<double>::quiet_NaN();
  return (wall_s - spent.kernels - spent.verification - spent.warm_up) / spent.kernels;
}

Record summary_record(const StudySpec& spec, const StudyOutcome& outcome,
                      const Provenance& provenance) {
  const auto count = [](const char* name, std::size_t value) {
    return Measurement{name, static_cast<double>(value), "1"};
  };
  const Spent& spent = outcome.spent;
  return {.kind = "study_summary",
          .labels = {{"study", spec.name}, {"question", spec.question}},
          .measurements = {count("points", outcome.points),
                           count("timed", outcome.timed),
                           count("skipped", outcome.skipped + outcome.over_budget),
                           count("refused", outcome.refused.size()),
                           {"kernel_time", spent.kernels, "s"},
                           {"verification_time", spent.verification, "s"},
                           {"warm_up_time", spent.warm_up, "s"},
                           {"wall_time", outcome.wall_s, "s"},
                           {"overhead", outcome.overhead(), "1"}},
          .provenance = provenance};
}

}  // namespace attest
