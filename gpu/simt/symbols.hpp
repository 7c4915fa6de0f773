#pragma once

#include <string>

#include "gpu/simt/shadow.hpp"

namespace attest::simt {

/// `gpu/kernels/x.cu:42`, relative to the repository; `an unknown line` without debug information.
[[nodiscard]] std::string source_line(ProgramPoint point);
/// The same for a place known by file name and line.
[[nodiscard]] std::string source_line(const char* file, int line);
/// Name of the kernel at this address, without namespaces and parameters.
[[nodiscard]] std::string function_name(const void* address);

}  // namespace attest::simt
