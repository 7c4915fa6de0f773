#pragma once

#include <string>

namespace attest {

/// A sentence that names the program which has planted bugs; empty where this one has them.
[[nodiscard]] std::string why_no_mutants();

}  // namespace attest
