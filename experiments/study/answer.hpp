#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "experiments/study/language/parse_study.hpp"

namespace attest {

/// Answer of a study's results to one of its expectations.
struct StudyAnswer {
  enum class Kind {
    holds,       ///< whatever value within the intervals is true
    refuted,     ///< none of them agrees
    undecided,   ///< the intervals are too wide
    no_results,  ///< what it asks about was not measured
  };
  Kind kind = Kind::no_results;
  std::string sentence;  ///< what was found: `1.32 (1.30 to 1.34) > 1.1`
};
/// Name of an answer in records: `holds`, `refuted`, `undecided`, `no_results`.
[[nodiscard]] std::string_view name_of(StudyAnswer::Kind kind);

/// Answers an expectation from the records of kind `study` with verdict `passed` and role `point`.
[[nodiscard]] StudyAnswer answer(const Expectation& expectation,
                                 const std::vector<Record>& records);

/// All expectations of a study as records of kind `study_answer`: labels `study`, `that`,
/// `because`, `claim`, `answer` (holds, refuted, undecided, no_results) and `found`, the sentence.
[[nodiscard]] std::vector<Record> answer_records(const StudySpec& spec,
                                                 const std::vector<Record>& records);
/// A record for every expectation, all undecided: points are missing, and which expectations they
/// are about is not asked.
[[nodiscard]] std::vector<Record> undecided_records(const StudySpec& spec, const std::string& why);

}  // namespace attest
