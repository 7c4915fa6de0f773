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
///
/// After run_plugins_apart() a plugin of host memory is loaded in a process of its own instead.
const LoadedPlugin& load_plugin(const std::filesystem::path& path,
                                std::chrono::milliseconds limit = std::chrono::seconds(20));

/// From now on plugins that are loaded run in processes of their own (plugin_process.hpp), but for
/// those with a kernel of CUDA memory. For who judges; a launch there takes as long as copying its
/// buffers besides.
void run_plugins_apart();

/// From now on a plugin's own unsupported() is not asked in this process: what the descriptor does
/// not exclude counts as supported. For a parent whose workers judge the cases: they ask, and a
/// crash there is a verdict.
void leave_questions_to_workers();

}  // namespace attest
