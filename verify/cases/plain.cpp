#include "verify/cases/plain.hpp"

#include <algorithm>
#include <vector>

#include "core/attention/problem_field.hpp"

namespace attest {
namespace {

struct OwnFields {
  const Operation* operation;
  void (*draw)(const KernelInfo&, Problem&);
};

std::vector<OwnFields>& registry() {
  static std::vector<OwnFields> known;
  return known;
}

}  // namespace

Problem with_prefix_mask(Problem problem, Mask mask) {
  problem.mask = mask;
  problem.window = {};
  return problem;
}

Problem plain_problem(const KernelInfo& kernel, Problem problem) {
  for (const ProblemField& field : problem_fields()) take_feature_away(field, problem);
  problem = with_needs_of(kernel, problem);
  const auto prefix = std::ranges::find_if_not(kernel.masks, is_window);
  if (!is_window(problem.mask) || prefix == kernel.masks.end()) return problem;
  return with_prefix_mask(problem, *prefix);
}

OwnFieldsRegistration::OwnFieldsRegistration(const Operation& operation,
                                             void (*draw)(const KernelInfo&, Problem&)) {
  registry().push_back({&operation, draw});
}

void draw_own_fields(const KernelInfo& kernel, Problem& problem) {
  const auto own = std::ranges::find(registry(), problem.operation, &OwnFields::operation);
  if (own != registry().end()) own->draw(kernel, problem);
}

}  // namespace attest
