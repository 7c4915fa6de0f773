#include "verify/cases/plain.hpp"

#include <algorithm>

#include "core/attention/problem_field.hpp"

namespace attest {

Problem with_prefix_mask(Problem problem, Mask mask) {
  problem.mask = mask;
  problem.window = {};
  return problem;
}

Problem plain_problem(const KernelInfo& kernel, Problem problem) {
  for (const ProblemField& field : problem_fields()) take_feature_away(field, problem);
  const auto prefix = std::ranges::find_if_not(kernel.masks, is_window);
  if (!is_window(problem.mask) || prefix == kernel.masks.end()) return problem;
  return with_prefix_mask(problem, *prefix);
}

}  // namespace attest
