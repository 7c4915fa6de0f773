#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// A case that once was a counterexample: of a wrong kernel, or of a wrong law.
struct Regression {
  std::string name;  ///< of its file in verify/campaign/regressions
  Case the_case;
};

/// The corpus, which every binary carries inside, sorted by name.
[[nodiscard]] const std::vector<Regression>& all_regressions();

/// The case for another kernel: same problem, inputs and layouts, the nearest of the kernel's
/// plans. Nothing when the kernel does not support it.
[[nodiscard]] std::optional<Case> fitted_case(const Case& c, const KernelInfo& kernel);

}  // namespace attest
