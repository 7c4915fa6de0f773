#pragma once

#include <string>

namespace attest {

/// Identifies the running program to the bit: the linker's build id, which survives stripping, or
/// where there is none a hash of the file. Two builds of one commit with different changes differ.
[[nodiscard]] const std::string& build_id();

}  // namespace attest
