#pragma once

#include <string>
#include <vector>

#include "core/kernel.hpp"

namespace attest {

/// Kernels whose name matches the glob, on the executor asked for. `auto` takes the GPU where there
/// is one, otherwise the SIMT executor; CPU kernels always run on the CPU. Mutants are chosen only
/// by a glob that says `mutant`. Throws InvalidInput for an executor name that does not exist or
/// when nothing matches, MachineError for an executor that this machine lacks.
[[nodiscard]] std::vector<const KernelInfo*> select_kernels(const std::string& glob,
                                                            const std::string& executor);

/// Registers the activations shipped with the program as family `real` and, if given, the user's
/// file as family `file`.
void load_captured_inputs(const std::string& user_file);

}  // namespace attest
