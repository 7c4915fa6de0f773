#include "experiments/study/shipped_studies.hpp"

#include <algorithm>
#include <array>

namespace attest {
namespace {

constexpr auto studies = std::to_array<ShippedStudy>({
#include "studies.inc"
});

}  // namespace

std::span<const ShippedStudy> shipped_studies() {
  return studies;
}

const ShippedStudy* find_shipped_study(std::string_view name) {
  const auto found = std::ranges::find(studies, name, &ShippedStudy::name);
  return found == studies.end() ? nullptr : &*found;
}

}  // namespace attest
