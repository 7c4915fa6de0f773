#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/device.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Declared at the foot of a kernel's file; the object library that holds it must be linked as
/// objects.
struct KernelRegistration {
  explicit KernelRegistration(KernelInfo kernel);
};
/// Facts that a planted bug adds to the kernel it was planted in (cmake/mutants.cmake).
struct Mutant {
  std::string name;
  std::string summary;
  std::string source;     ///< claim or zoo id
  std::string killed_by;  ///< the law that must catch it
};
/// Takes the place of KernelRegistration in a mutated copy of a kernel's file.
struct MutantRegistration {
  MutantRegistration(const Mutant& mutant, KernelInfo kernel);
};
struct DeviceRegistration {
  explicit DeviceRegistration(DeviceFactory factory);
};

/// Registers a kernel that arrives at run time, from a plugin. References into all_kernels() that
/// were taken before are void. Throws InvalidInput when a kernel of that name exists, on whatever
/// executor.
void add_kernel(KernelInfo kernel);

/// All kernels, sorted by name, then executor. Throws std::logic_error if two share both.
[[nodiscard]] const std::vector<KernelInfo>& all_kernels();
/// Kernel of a name on an executor; nullptr when there is none.
[[nodiscard]] const KernelInfo* find_kernel(std::string_view name, Executor executor);

/// A sentence why the executor cannot be used here; empty when it can.
[[nodiscard]] std::string why_unavailable(Executor executor);
/// Device of an executor. Throws MachineError with the sentence of why_unavailable().
[[nodiscard]] std::unique_ptr<Device> make_device(Executor executor);

}  // namespace attest
