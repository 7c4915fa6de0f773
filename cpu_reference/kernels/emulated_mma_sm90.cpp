// A FlashAttention-2 style kernel on the tensor cores of sm_90 (H100/H200), replayed: 16 products a
// step, terms truncated to 25 fraction bits below the largest, sums truncated to fp32
// (core/attention/tensor_core_product.hpp).

#include "core/run/registry.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"

namespace attest {
namespace {

const KernelRegistration registration(emulated_kernel(
    "emulated_mma_sm90", "emulation: tensor cores of sm_90 (16 terms a step, 25 fraction bits)",
    hopper(), {ElementType::fp16, ElementType::bf16}));

}  // namespace
}  // namespace attest
