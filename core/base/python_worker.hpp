#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_worker.hpp"

namespace attest {

/// A Python script in a process of its own.
class PythonWorker : public JsonWorker {
 public:
  /// Starts scripts[0] with this process's id and the paths of the other scripts as arguments. The
  /// scripts are texts, handed over in memory. Throws as JsonWorker does.
  PythonWorker(std::string name, std::span<const std::string_view> scripts, Limits limits);
};

/// Start of a script that is a file: its arguments are this process's id and `arguments`. In
/// a box it is the Python that python_place() names.
[[nodiscard]] JsonWorker::Start start_of_script(std::string name, const std::string& script,
                                                const std::vector<std::string>& arguments,
                                                bool is_boxed);

}  // namespace attest
