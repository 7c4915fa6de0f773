#pragma once

#include <string>
#include <vector>

namespace attest {

/// The Python that peers and functions run in: $ATTEST_PYTHON, or python3 of the path.
[[nodiscard]] std::string python_program();

/// Place of a Python. A box needs to know it: it shows no other files, and a shim that looks for
/// the program in somebody's home finds nothing there.
struct PythonPlace {
  std::string program;               ///< itself
  std::vector<std::string> folders;  ///< what it imports from
  bool has_numpy = false;
};
/// Place of python_program(), asked of it once, by the first process that needs it. Throws
/// MachineError. Not for several threads.
[[nodiscard]] const PythonPlace& python_place();

}  // namespace attest
