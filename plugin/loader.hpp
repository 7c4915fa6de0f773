#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// A plugin that was loaded: its kernels are in all_kernels().
struct LoadedPlugin {
  std::string path;                  ///< absolute
  std::vector<std::string> kernels;  ///< their names, in the order of the plugin
};

/// Loads a shared object, checks what it describes and registers its kernels. A path that was
/// loaded before is not loaded again. The first load happens in a child process: a plugin that
/// crashes, hangs or ends the process while it is loaded costs that child. Throws InvalidInput with
/// one line for whatever is wrong with the plugin. References into all_kernels() that were taken
/// before are void. Not for several threads; call before the process uses CUDA.
const LoadedPlugin& load_plugin(const std::filesystem::path& path,
                                std::chrono::milliseconds limit = std::chrono::seconds(20));

/// From now on a plugin's own unsupported() is not asked in this process: what the descriptor does
/// not exclude counts as supported. For a parent whose workers judge the cases: they ask, and a
/// crash there is a verdict.
void leave_questions_to_workers();

}  // namespace attest
