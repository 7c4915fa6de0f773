// A FlashAttention-2 style kernel on CUDA cores, replayed: fp32 fused multiply-adds for both
// products, P rounded to the input's format (fp32 keeps it).

#include "core/run/registry.hpp"
#include "cpu_reference/kernels/emulated_kernel.hpp"

namespace attest {
namespace {

const KernelRegistration registration(
    emulated_kernel("emulated_fma", "emulation: fp32 FMA products, P in the input's format",
                    {.kind = Accumulation::Kind::fp32_fma},
                    {ElementType::fp32, ElementType::fp16, ElementType::bf16}));

}  // namespace
}  // namespace attest
