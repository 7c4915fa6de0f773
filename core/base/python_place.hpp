#pragma once

#include <string>
#include <vector>

namespace attest {

/// The Python that peers and functions run in: $ATTEST_PYTHON, or python3 of the path.
[[nodiscard]] std::string python_program();

/// Files of a Python. A box needs them: it shows no others, and a shim that looks for the program
/// in a user's home directory finds nothing there.
struct PythonPlace {
  std::string program;               ///< itself
  std::vector<std::string> folders;  ///< what it imports from
  bool has_numpy = false;
};
/// Place of python_program(), asked of it once a process. Throws MachineError. Not for several
/// threads.
[[nodiscard]] const PythonPlace& python_place();

}  // namespace attest
