#pragma once

#include <cstdint>

#include "core/attention/element_type.hpp"
#include "core/run/device.hpp"

namespace attest {

/// The recorded instructions in one of their homes. Registered by the kernels' own file, once for
/// each home that it is compiled for.
struct ArithmeticKernels {
  Executor executor;
  /// d = a b + c by one mma.sync for each of `blocks` blocks; the tensors of MmaOperands, all on
  /// the device.
  void (*launch_products)(Device& device, ElementType type, const std::uint32_t* a,
                          const std::uint32_t* b, const float* c, float* d, int blocks);
  /// *sum += exp2_mark() of all inputs with these 9 bits of sign and exponent.
  void (*launch_exp2_marks)(Device& device, unsigned part, unsigned long long* sum);
};
struct ArithmeticKernelsRegistration {
  explicit ArithmeticKernelsRegistration(const ArithmeticKernels& kernels);
};
/// Throws MachineError when this program has none for the executor.
[[nodiscard]] const ArithmeticKernels& arithmetic_kernels(Executor executor);

}  // namespace attest
