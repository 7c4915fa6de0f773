#pragma once

#include <span>

#include "core/attention/operation.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// The operation that all of the problems ask for; forward where there are none. Throws
/// InvalidInput naming two operations where they differ.
[[nodiscard]] const Operation& common_operation(std::span<const Problem> problems);

}  // namespace attest
