#pragma once

#include <string>

namespace attest {

/// Empty where this program has planted bugs; otherwise which program has them.
[[nodiscard]] std::string why_no_mutants();

}  // namespace attest
