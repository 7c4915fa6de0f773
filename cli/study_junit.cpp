#include "cli/study_junit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "core/records/provenance.hpp"

namespace attest {
namespace {

JunitEnding ending_of(const Record& answer) {
  const std::string& word = answer.labels.at("answer");
  const std::string& found = answer.labels.at("found");
  if (word == "holds") return {};
  if (word != "refuted") return {.tag = "skipped", .message = fmt::format("{}: {}", word, found)};
  const auto because = answer.labels.find("because");
  return {.tag = "failure",
          .type = word,
          .message = found,
          .text = because == answer.labels.end() ? "" : because->second};
}

/// Points that give a wrong answer are not measured, and make a study fail.
JunitEnding ending_of(const StudyOutcome& outcome) {
  if (outcome.refused.empty()) return {};
  return {.tag = "failure",
          .type = "refused",
          .message = fmt::format("{} refused", outcome.refused.size()),
          .text = fmt::format("{}\n", fmt::join(outcome.refused, "\n"))};
}

}  // namespace

std::optional<JunitSuite> junit_suite_of(const StudyJob& job, const StudyOutcome& outcome) {
  const bool is_answered = outcome.is_complete || outcome.over_budget > 0;
  if (outcome.is_interrupted || !is_answered) return std::nullopt;
  JunitSuite suite{.name = job.spec.name,
                   .seconds = outcome.wall_s,
                   .properties = {{"question", job.spec.question},
                                  {"seed", std::to_string(job.settings.seed)},
                                  {"points", std::to_string(outcome.points)},
                                  {"commit", current_provenance("").commit}},
                   .cases = {{"every point gives the right answer", ending_of(outcome)}}};
  for (const Record& answer : outcome.answers) {
    suite.cases.push_back({answer.labels.at("that"), ending_of(answer)});
  }
  return suite;
}

}  // namespace attest
