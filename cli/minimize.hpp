#pragma once

#include "cli/verify_options.hpp"

namespace attest {

/// Shrinks the counterexample that `options.minimize` names until no simpler case fails, and writes
/// the result beside the others. Exit code 1: it still fails (and is smaller, if it says so); 0: it
/// does not fail any more.
[[nodiscard]] ExitCode minimize(VerifyOptions options);

}  // namespace attest
