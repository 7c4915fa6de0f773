#pragma once

#include <optional>
#include <string>

#include "core/run/kernel.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// A problem of the same kind, with few heads and with lengths that end one past a tile of the
/// Plan: small enough for all laws, the same for all lengths of a suite.
[[nodiscard]] Case small_case(const KernelInfo& kernel, const Problem& problem, const Plan& plan);

/// The law that the case breaks and how; nothing when it passes. The kernel supports it.
[[nodiscard]] std::optional<std::string> why_case_fails(CaseRunner& runner,
                                                        const KernelInfo& kernel, const Case& c);

}  // namespace attest
