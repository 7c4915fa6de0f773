#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace attest {

/// Resources that the compiler gave a kernel for one GPU architecture.
struct CompiledKernel {
  std::string name;             ///< such as `k3_sequence_parallel<8>`; see kernel_name_of()
  int compute_capability = 0;   ///< of the machine code: 90
  int registers = 0;            ///< of a thread
  int stack_bytes = 0;          ///< of a thread: spilled registers and arrays with moving indices
  int static_shared_bytes = 0;  ///< of a block, without the driver's reserve

  friend bool operator==(const CompiledKernel&, const CompiledKernel&) = default;
};

/// Kernels whose machine code is in an ELF file that nvcc had a part in, a program or an object: it
/// keeps one cubin for each source and architecture in the section .nv_fatbin. No GPU and no tool
/// of the toolkit is needed. Empty when there is no such section. Cubins that are compressed (nvcc
/// --compress-mode=size) are left out, as is whatever is damaged.
[[nodiscard]] std::vector<CompiledKernel> compiled_kernels_in(std::span<const std::byte> elf);
/// The kernels whose machine code is in a file. Throws MachineError when it cannot be read.
[[nodiscard]] std::vector<CompiledKernel> compiled_kernels_in(const std::filesystem::path& file);
/// The kernels whose machine code is in the running program.
[[nodiscard]] std::vector<CompiledKernel> compiled_kernels();

}  // namespace attest
