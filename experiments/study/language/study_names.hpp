#pragma once

#include <string_view>
#include <vector>

#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/point.hpp"
#include "experiments/study/language/vocabulary.hpp"

namespace attest {

/// Names that say which point it is: kernel, executor, problem.FIELD, plan.FIELD, inputs.FIELD.
[[nodiscard]] Vocabulary identity_vocabulary();
/// Missing for other names, and for fields of the Plan that the kernel does not use; key_splits is
/// then 1.
[[nodiscard]] Value identity_value(std::string_view name, Executor executor, const Case& subject);

/// Those, and what models say before anything runs (model_values.hpp).
[[nodiscard]] Vocabulary constraint_vocabulary();
/// Names of results: those of identity_vocabulary and measurements (time, rate,
/// speed_over_BASELINE, ...).
[[nodiscard]] Vocabulary result_vocabulary(const std::vector<Baseline>& baselines);

/// Fields of the problem by their bare names, for values that are computed from others.
[[nodiscard]] Vocabulary problem_vocabulary();

}  // namespace attest
