#pragma once

#include "core/attention/problem.hpp"
#include "include/attest/plugin.h"

namespace attest {

/// A Problem as plugin.h tells a kernel of it. Throws std::logic_error if the table of fields has
/// one that has no place there.
[[nodiscard]] AttestProblem to_c(const Problem& problem, void* user_data);

}  // namespace attest
