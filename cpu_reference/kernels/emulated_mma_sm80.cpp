// A FlashAttention-2 style kernel on the tensor cores of sm_80 (A100), replayed: 8 products a step,
// terms truncated to 24 fraction bits below the largest, sums truncated to fp32
// (core/attention/tensor_core_product.hpp).

#include "core/run/registry.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"

namespace attest {
namespace {

const KernelRegistration registration(emulated_kernel(
    "emulated_mma_sm80", "emulation: tensor cores of sm_80 (8 terms a step, 24 fraction bits)",
    ampere(), {ElementType::fp16, ElementType::bf16}));

}  // namespace
}  // namespace attest
