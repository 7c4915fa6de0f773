#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/kernel.hpp"

namespace attest {

/// Names that a study may ask for: every kernel that must pass, on whatever executor, and the peers
/// that this program was built without.
[[nodiscard]] std::vector<std::string> study_kernel_names();
/// The kernels whose names match a glob, in the order of the names.
[[nodiscard]] std::vector<std::string> kernels_matching(std::string_view glob);

/// Sentence about a name or glob that no study may ask for: that no kernel has it and which are
/// near, or that the kernel does not compute attention.
[[nodiscard]] std::string why_no_study_kernel(std::string_view name);

/// True for kernels of others' libraries, which are not in every build and not on every machine.
[[nodiscard]] bool is_peer(std::string_view name);
/// Names of the kernels of others' libraries, whether this program was built with them or not.
[[nodiscard]] const std::vector<std::string>& peer_names();

/// The kernel of that name where a study runs it, or why there is none.
struct ChosenKernel {
  const KernelInfo* kernel = nullptr;
  std::string why_not{};
};
/// `executor`: nothing stands for auto: the GPU where there is one, otherwise the SIMT executor;
/// CPU kernels on the CPU.
[[nodiscard]] ChosenKernel choose_kernel(std::string_view name, std::optional<Executor> executor,
                                         bool has_gpu);

}  // namespace attest
