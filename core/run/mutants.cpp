#include "core/run/mutants.hpp"

#include <algorithm>

#include "core/run/registry.hpp"

namespace attest {

std::string why_no_mutants() {
  const bool has_some = std::ranges::any_of(
      all_kernels(), [](const KernelInfo& kernel) { return kernel.role == KernelRole::mutant; });
  return has_some ? ""
                  : "this program has no planted bugs; attest-mutants has them, which ./attest "
                    "builds when it is asked for one";
}

}  // namespace attest
