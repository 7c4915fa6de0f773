#pragma once

#include <cstdint>

#include "core/attention/element_type.hpp"
#include "core/run/device.hpp"

namespace attest {
/// The recorded instructions on one executor. Registered by the kernels' own file, once for each
/// executor that it is compiled for.
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
/// Kernels of an executor. Throws MachineError when this program has none for it.
[[nodiscard]] const ArithmeticKernels& arithmetic_kernels(Executor executor);

/// Memory that holds wgmma's left factor.
enum class WgmmaLeft { shared, registers };

/// d = a b + c by wgmma m64n8 in steps of 32 bytes of depth, 32 codes, 16 numbers of 16 bits or 8
/// of TF32, chained without a wait between them; for each of `blocks` blocks. a [blocks, 64, depth]
/// and b [blocks, depth, 8] hold one number a word, bits in the low end, as MmaOperands; c and d
/// [blocks, 64, 8] in fp32; all on the device. Both types are fp16, bf16, or fp32 for TF32, or each
/// is e4m3 or e5m2; depth is steps * mma_depth(), steps 1 or 4.
void launch_wgmma_products(ElementType a_type, ElementType b_type, WgmmaLeft left,
                           const std::uint32_t* a, const std::uint32_t* b, const float* c, float* d,
                           int blocks, int steps);

}  // namespace attest
