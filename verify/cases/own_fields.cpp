#include "verify/cases/own_fields.hpp"

#include <algorithm>
#include <vector>

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

OwnFieldsRegistration::OwnFieldsRegistration(const Operation& operation,
                                             void (*draw)(const KernelInfo&, Problem&)) {
  registry().push_back({&operation, draw});
}

void draw_own_fields(const KernelInfo& kernel, Problem& problem) {
  const auto own = std::ranges::find(registry(), problem.operation, &OwnFields::operation);
  if (own != registry().end()) own->draw(kernel, problem);
}

}  // namespace attest
