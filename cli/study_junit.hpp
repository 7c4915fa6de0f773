#pragma once

#include <optional>

#include "cli/junit.hpp"
#include "experiments/study/job.hpp"

namespace attest {

/// A study as a CI shows it: a case for each expectation, refuted ones being failures and undecided
/// ones skipped, and one that no point was refused. Nothing where it is not answered yet: other
/// ranks are at work, or it was interrupted.
[[nodiscard]] std::optional<JunitSuite> junit_suite_of(const StudyJob& job,
                                                       const StudyOutcome& outcome);

}  // namespace attest
