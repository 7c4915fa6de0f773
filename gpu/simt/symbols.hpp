#pragma once

#include <string>
#include <vector>

#include "gpu/simt/shadow.hpp"

namespace attest::simt {

/// `gpu/kernels/x.cu:42`, relative to the repository; `an unknown line` without debug information.
[[nodiscard]] std::string source_line(ProgramPoint point);
/// Source lines of a point: its own and those that its function was inlined into, innermost first;
/// at least one.
[[nodiscard]] std::vector<std::string> source_lines(ProgramPoint point);
/// `FILE:LINE` below the repository's root, for a place known by file name and line.
[[nodiscard]] std::string source_line(const char* file, int line);
/// Name of the kernel at this address as kernel_name_of() gives it.
[[nodiscard]] std::string function_name(const void* address);

}  // namespace attest::simt
