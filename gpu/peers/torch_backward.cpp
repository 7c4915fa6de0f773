// PyTorch's backward passes as kernels under test: the operators behind the backends of
// scaled_dot_product_attention, which take O and LSE as they are given. FlashAttention-4's beside
// them.
//
// torch_backward.py runs them; what their BackwardRoundings rest on is said beside each, read in
// PyTorch's sources. Which kernels of the GPU ran is checked as in torch_sdpa.cpp.
#include <fmt/format.h>

#include <limits>

#include "core/operations/backward.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/fused_backward_roundings.hpp"
#include "gpu/peers/torch_peer.hpp"

namespace attest {
namespace {

std::optional<std::string> why_not_flash(const Problem& p, const Plan&) {
  if (p.mask == Mask::causal_top_left && p.query_len != p.key_len) {
    return fmt::format(
        "{} queries and {} keys; FlashAttention's causal mask is bottom-right, which is top-left "
        "with as many of both",
        p.query_len, p.key_len);
  }
  return why_no_fused_backward(p);
}

std::optional<std::string> why_not_efficient(const Problem& p, const Plan&) {
  if (p.query_heads != p.kv_heads) {
    return fmt::format("{} query heads and {} kv heads; the backend needs as many of both",
                       p.query_heads, p.kv_heads);
  }
  return why_no_fused_backward(p);
}

std::optional<std::string> why_not_math(const Problem& p, const Plan&) {
  if (p.key_len == 0) return "key_len is 0; allowed: at least 1";
  return std::nullopt;
}

/// FlashAttention-2: dS from P in fp32, dQ and dK scaled at the end; dK and dV of every query head
/// are tensors in the element type, which at::sum_out adds.
BackwardRoundings of_flash(const Problem& p, const Plan&) {
  return fused_backward_roundings(p);
}

/// CUTLASS: P is read back from shared memory, in the element type, for dS, and dS is multiplied by
/// the scale before it is stored there. No groups.
BackwardRoundings of_efficient(const Problem& p, const Plan&) {
  BackwardRoundings how = fused_backward_roundings(p);
  how.dscore_of_rounded_weights = true;
  how.scales_dscore = true;
  return how;
}

/// Roundings that torch_backward.py writes down: fp32 throughout, cuBLAS's sums in any order.
BackwardRoundings of_math(const Problem& p, const Plan&) {
  return {.delta_chain = p.output_dim(),
          .dq_chain = p.key_len,
          .kv_chain = p.query_len,
          .kv_parts = p.query_heads / p.kv_heads,
          .output = p.element_type};
}

struct Backend {
  std::string name, summary;
  std::vector<ElementType> types;
  std::vector<Mask> masks;
  BackwardRoundings (*precision)(const Problem&, const Plan&);
  std::optional<std::string> (*unsupported)(const Problem&, const Plan&);
  std::string source = "PyTorch SDPA, backward";
  std::string (*unavailable)() = why_no_torch;
  ComputeCapabilities compute_capabilities{};
  std::vector<std::int64_t> head_dims{};
};

KernelInfo kernel(const Backend& backend) {
  const std::string name = backend.name;
  KernelInfo info;
  info.operation = &backward_operation;
  info.name = name;
  info.summary = backend.summary;
  info.source = backend.source;
  info.executor = Executor::gpu;
  info.element_types = backend.types;
  info.masks = backend.masks;
  info.head_dims = backend.head_dims;
  info.compute_capabilities = backend.compute_capabilities;
  // Sums into dQ by atomics, splits that hang on the batch, cuBLAS's choice of kernels.
  info.is_deterministic = false;
  info.is_batch_invariant = false;
  info.depends_on_alignment = true;
  info.ignores_hidden_nan = false;
  info.layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16};
  info.unavailable = backend.unavailable;
  info.precision = backend.precision;
  info.plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; };
  info.unsupported = backend.unsupported;
  info.launch = [name](const BackwardArguments& a, Device& device) {
    launch_torch_peer(name, call_of(a), device);
  };
  info.timed_launch = [name](const BackwardArguments& a, Device& device, LaunchesInRow launches) {
    return time_torch_peer(name, call_of(a), device, launches);
  };
  return info;
}

const std::vector<ElementType> half_types{ElementType::fp16, ElementType::bf16};
const std::vector<ElementType> all_types{ElementType::fp32, ElementType::fp16, ElementType::bf16};
const std::vector<Mask> all_causal{Mask::none, Mask::causal_top_left, Mask::causal_bottom_right};

const KernelRegistration flash{
    kernel({.name = "torch_flash_backward",
            .summary = "gradients by PyTorch's flash backend, FlashAttention-2, in a Python worker",
            .types = half_types,
            .masks = all_causal,
            .precision = of_flash,
            .unsupported = why_not_flash})};
// Its source takes multiples of 8 up to 256 and compiles for each. dK and dV of a group it adds in
// fp32, one rounding fewer than declared; dQ is scaled when its fp32 sums are converted
// (flash_bwd_sm90.py, flash_bwd_postprocess.py).
const KernelRegistration flash_attention_4{
    kernel({.name = "flash_attention_4_backward",
            .summary = "gradients by FlashAttention-4's Hopper kernels, in a Python worker",
            .types = half_types,
            .masks = all_causal,
            .precision = of_flash,
            .unsupported = why_not_flash,
            .source = "wheel flash-attn-4",
            .unavailable = why_no_flash_attention_4,
            .compute_capabilities = hopper_alone,
            .head_dims = {64, 128}})};
// In fp32 its three TF32 products have no place in BackwardRoundings.
const KernelRegistration efficient{kernel(
    {.name = "torch_efficient_backward",
     .summary = "gradients by PyTorch's memory-efficient backend, of CUTLASS, in a Python worker",
     .types = half_types,
     .masks = all_causal,
     .precision = of_efficient,
     .unsupported = why_not_efficient})};
const KernelRegistration cudnn{kernel(
    {.name = "torch_cudnn_backward",
     .summary = "gradients by PyTorch's cuDNN backend, in a Python worker",
     .types = half_types,
     .masks = {Mask::none, Mask::causal_top_left},
     .precision = [](const Problem& p, const Plan&) { return cudnn_backward_roundings(p); },
     .unsupported = [](const Problem& p, const Plan&) { return why_no_cudnn_backward(p); }})};
const KernelRegistration math{kernel(
    {.name = "torch_math_backward",
     .summary = "gradients by the formula in PyTorch's operators, unfused, in a Python worker",
     .types = all_types,
     .masks = all_causal,
     .precision = of_math,
     .unsupported = why_not_math})};

}  // namespace
}  // namespace attest
