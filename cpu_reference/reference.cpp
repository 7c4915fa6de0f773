#include "cpu_reference/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace attest {
namespace {

// A function-local static exists before the first registration, whatever the order of
// initialisation.
std::vector<Reference>& references() {
  static std::vector<Reference> known;
  return known;
}

}  // namespace

ReferenceRegistration::ReferenceRegistration(const Reference& reference) {
  references().push_back(reference);
}

const Reference& reference_of(const Operation& operation) {
  const auto found = std::ranges::find(references(), &operation, &Reference::operation);
  if (found == references().end()) {
    throw std::logic_error(fmt::format("nothing knows the exact answer of {}", operation.name));
  }
  return *found;
}

}  // namespace attest
