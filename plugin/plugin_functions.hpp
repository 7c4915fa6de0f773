#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/run/device.hpp"
#include "include/attest/plugin.h"

namespace attest {

/// The functions of a plugin's kernel, called where the plugin was loaded: here or in a process of
/// its own. `plan` counts the kernel's plans. Asked for is only what the kernel has.
class PluginFunctions {
 public:
  PluginFunctions() = default;
  PluginFunctions(const PluginFunctions&) = delete;
  PluginFunctions& operator=(const PluginFunctions&) = delete;
  virtual ~PluginFunctions() = default;

  /// Each throws KernelError if a C++ exception left the plugin.
  [[nodiscard]] virtual std::optional<std::string> unsupported(const AttestProblem& problem,
                                                               std::size_t plan) = 0;
  [[nodiscard]] virtual std::uint64_t scratch_bytes(const AttestProblem& problem,
                                                    std::size_t plan) = 0;
  virtual void refine_precision(const AttestProblem& problem, std::size_t plan,
                                AttestPrecision& precision) = 0;
  [[nodiscard]] virtual std::int64_t first_row(const AttestProblem& problem, std::size_t plan) = 0;
  /// The plugin's complaint, or nothing. `device` holds the tensors.
  [[nodiscard]] virtual std::optional<std::string> run(const AttestRun& run, Device& device) = 0;
};

/// Functions of a plugin that is loaded in this process; `kernel` is a checked copy of its entry.
[[nodiscard]] std::shared_ptr<PluginFunctions> functions_here(const AttestKernel& kernel);

}  // namespace attest
