#pragma once

#include <string>
#include <vector>

namespace attest {

/// Identifies the running program to the bit: the linker's build id, which survives stripping, or
/// where there is none a hash of the file. Two builds of one commit with different changes differ.
[[nodiscard]] const std::string& build_id();

/// Identifies the program with the plugins that it has loaded, each by the bytes of its file.
[[nodiscard]] std::string build_id_with(const std::vector<std::string>& plugins);

}  // namespace attest
