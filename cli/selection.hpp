#pragma once

#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "plugin/loader.hpp"

namespace attest {

/// Kernels whose name matches the glob, on the executor asked for. `auto` takes the GPU where there
/// is one, otherwise the SIMT executor; CPU kernels always run on the CPU. Mutants are chosen only
/// by a glob that says `mutant`. Throws InvalidInput for an executor name that does not exist or
/// when nothing matches, MachineError for an executor that this machine lacks. With `operation`
/// only kernels of it are chosen.
[[nodiscard]] std::vector<const KernelInfo*> select_kernels(const std::string& glob,
                                                            const std::string& executor,
                                                            const Operation* operation = nullptr);

/// Loads a shared object, or a function of Python (plugin/python_subject.hpp). Throws InvalidInput
/// with one line for whatever is wrong with it.
const LoadedPlugin& load_kernels_of(const std::string& plugin, bool says_how = true);
/// Functions of Python among the plugins are judged by the operation from here on
/// (plugin/python_subject.hpp): backward may become gradient_operation. True: all are such.
bool ask_functions_for(const std::string& operation, std::vector<std::string>& plugins);
/// Loads plugins and returns the names of their kernels. Called before anything else: see
/// load_plugin.
std::vector<std::string> load_plugins(const std::vector<std::string>& plugins,
                                      bool says_how = true);

/// The glob that selects the plugins' kernels which can run here; a line on stderr names the
/// others. Throws MachineError with the reason when none can: a CUDA kernel needs a GPU.
[[nodiscard]] std::string glob_of_runnable(const std::vector<std::string>& plugin_kernels);

/// Registers the activations shipped with the program as family `real` and, if given, the user's
/// file as family `file`.
void load_captured_inputs(const std::string& user_file);

}  // namespace attest
