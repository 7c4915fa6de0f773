#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "plugin/declaration.hpp"
#include "plugin/subject_process.hpp"

namespace attest {

/// A plugin in a process of its own (plugin_subject.hpp): none of its code runs here. Buffers of a
/// call are copied there and back as they are, guards, gaps and poison too.
class PluginProcess {
 public:
  /// `judged`: in a box. Throws WorkerFault for what the plugin does when it is loaded,
  /// InvalidInput for what it says of itself, and MachineError.
  explicit PluginProcess(const Judgeable& judged);
  /// One that is trusted, without a box.
  explicit PluginProcess(const std::string& path);

  /// Kernels whose functions are asked there. They keep the process.
  [[nodiscard]] static std::vector<KernelInfo> kernels_of(
      const std::shared_ptr<PluginProcess>& process, const std::string& where);

 private:
  friend class FunctionsThere;

  SubjectProcess process_;
};

}  // namespace attest
