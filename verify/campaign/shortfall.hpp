#pragma once

#include <string>
#include <vector>

#include "verify/campaign/kernel_result.hpp"

namespace attest {

/// Sentences on what of a kernel was asked for and not judged: what it refused, why it has not
/// passed although nothing failed, and which of its claims no case showed. A kernel that has some
/// of its draws refused says so if it is a plugin or if cases were given up; others take what they
/// list, and most of what they refuse is Plans that a problem does not go with. Nothing for
/// negative controls and mutants.
[[nodiscard]] std::vector<std::string> shortfalls_of(const KernelResult& result);

}  // namespace attest
