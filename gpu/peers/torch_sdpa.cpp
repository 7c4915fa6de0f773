// The backends of PyTorch's scaled_dot_product_attention, FlashAttention-3 and -4 and FlashInfer's
// prefill as kernels under test [KS of S3; P3 of S2].
//
// Each backend is reached through the operator that PyTorch dispatches it to, which also returns
// LSE, so there is no choice of PyTorch's left; the names of the GPU kernels are checked as well
// when a problem is first timed. Masks are those that PyTorch offers for the backend: is_causal is
// top-left, and torch.nn.attention.bias.causal_lower_right bottom-right. FlashAttention-2's own
// causal mask is bottom-right, so with as many queries as keys it is both.
//
// What the PrecisionPlans rest on: gpu/peers/README.md.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/fused_precision.hpp"
#include "gpu/peers/torch_peer.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;

std::optional<std::string> why_sizes_do_not_fit(const Problem& p) {
  if (p.head_dim % 8 != 0 || p.head_dim > largest_head_dim) {
    return fmt::format("head_dim is {}; allowed: multiples of 8 up to {}", p.head_dim,
                       largest_head_dim);
  }
  if (p.key_len == 0) return "key_len is 0; allowed: at least 1";
  return std::nullopt;
}

/// A sentence for what fused kernels do not take: of a row without keys they have no LSE of
/// -infinity, or an answer (README.md, finding 5).
std::optional<std::string> why_not_fused(const Problem& p) {
  if (auto reason = why_sizes_do_not_fit(p)) return reason;
  if (auto reason = why_no_such_grid(p)) return reason;
  if (p.mask == Mask::causal_bottom_right && p.query_len > p.key_len) {
    return fmt::format("query_len is {}; allowed with a bottom-right mask: at most key_len, {}",
                       p.query_len, p.key_len);
  }
  return std::nullopt;
}

/// A sentence for scales that kernels do not take which form the maximum before they scale
/// (README.md, findings 1 and 3).
std::optional<std::string> why_not_positive(const Problem& p) {
  if (p.scale >= std::numeric_limits<float>::min()) return std::nullopt;
  return fmt::format("scale is {}; allowed: positive normal numbers (gpu/peers/README.md)",
                     p.scale);
}

std::optional<std::string> why_not_cudnn(const Problem& p, const Plan&) {
  const auto reason = why_not_fused(p);
  return reason ? reason : why_not_positive(p);
}

std::optional<std::string> why_not_flash(const Problem& p, const Plan& plan) {
  if (p.mask == Mask::causal_top_left && p.query_len != p.key_len) {
    return fmt::format(
        "{} queries and {} keys; FlashAttention's causal mask is bottom-right, which is top-left "
        "with as many of both",
        p.query_len, p.key_len);
  }
  return why_not_cudnn(p, plan);
}

/// tanh.approx.f32 errs by 2^-11 of itself [PTX ISA], and its argument was rounded twice.
PrecisionPlan flash_3_precision(const Problem& problem, const Plan&) {
  PrecisionPlan plan = fused_precision(problem);
  plan.softcap_error = 0x1p-11 + 4 * 0x1p-24;
  return plan;
}

/// Rows that see no key it says are 0, with an LSE of -infinity.
std::optional<std::string> why_not_flash_4(const Problem& p, const Plan& plan) {
  Problem without_empty_rows = p;
  if (p.mask == Mask::causal_bottom_right) without_empty_rows.mask = Mask::none;
  return why_not_flash(without_empty_rows, plan);
}

/// Decoding, and a few drafted tokens. Rows without keys come with lengths of single entries, too.
std::optional<std::string> why_not_kvcache(const Problem& p, const Plan& plan) {
  constexpr std::int64_t most_queries = 16;
  if (p.query_len > most_queries) {
    return fmt::format("query_len is {}; allowed: at most {}", p.query_len, most_queries);
  }
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t queries = p.query_len_of(b), keys = p.key_len_of(b);
    if (queries > 0 && visible_key_count(p, b, 0) == 0) {
      return fmt::format("entry {} has {} queries and {} keys; allowed: no row without a key", b,
                         queries, keys);
    }
    if (p.mask == Mask::causal_top_left && queries != keys) {
      return fmt::format("entry {} has {} queries and {} keys; its causal mask is bottom-right", b,
                         queries, keys);
    }
  }
  return why_not_flash(p, plan);
}

std::optional<std::string> why_not_efficient(const Problem& p, const Plan&) {
  if (p.query_heads != p.kv_heads) {
    return fmt::format("{} query heads and {} kv heads; the backend needs as many of both",
                       p.query_heads, p.kv_heads);
  }
  if (p.scale != 0 && !(std::abs(p.scale) >= std::numeric_limits<float>::min())) {
    return fmt::format("scale is {}; allowed: 0 and normal numbers", p.scale);
  }
  return why_not_fused(p);
}

/// fp32 factors are read by tensor cores in two TF32 parts and three products, which go through one
/// accumulator: of Q K^T that is a chain of as many steps as one product a step would take.
PrecisionPlan efficient_precision(const Problem& problem, const Plan&) {
  PrecisionPlan plan = fused_precision(problem);
  if (problem.element_type == ElementType::fp32) {
    plan.score = {Accumulation::Kind::tensor_core, 1, 25};
    plan.value = hopper_tf32();
    plan.score_parts = plan.value_parts = {.format = Parts::Format::tf32, .count = 2, .cut = 2};
  }
  return plan;
}

/// All in fp32, 16-bit inputs too. Q and K are both multiplied by sqrt(scale), which was rounded
/// itself: four roundings a term, of which scale_folded_into_q counts one. From 8 terms on, steps
/// of 3 products cost more than fused multiply-adds and the other three.
PrecisionPlan math_precision(const Problem& problem, const Plan&) {
  return {.score = {Accumulation::Kind::tensor_core, 3, 25},
          .scale_after_dot = false,
          .scale_folded_into_q = true,
          .exp = library_expf(),
          .rescale = Rescale::none,
          .normaliser_chain = problem.key_len,
          .division_error = 0x1p-24,
          .log_error = 0x1p-23};
}

struct Backend {
  std::string name, summary;
  std::vector<ElementType> types;
  std::function<PrecisionPlan(const Problem&, const Plan&)> precision;
  std::function<std::optional<std::string>(const Problem&, const Plan&)> unsupported;
  std::vector<Mask> masks{Mask::none, Mask::causal_top_left, Mask::causal_bottom_right};
  Dataflow dataflow = Dataflow::queries_outside;
  bool is_deterministic = true;
  bool is_batch_invariant = true;
  bool depends_on_alignment = false;
  std::string source = "KS; PyTorch SDPA";
  std::function<std::string()> unavailable = why_no_torch;
  ComputeCapabilities compute_capabilities{};
  Features features{};
  bool drops_vanished_parts = false;
  std::vector<std::int64_t> head_dims{};
};

KernelInfo kernel(const Backend& backend) {
  const std::string name = backend.name;
  return {.name = name,
          .summary = backend.summary,
          .source = backend.source,
          .executor = Executor::gpu,
          .dataflow = backend.dataflow,
          .element_types = backend.types,
          .masks = backend.masks,
          .head_dims = backend.head_dims,
          .features = backend.features,
          .is_deterministic = backend.is_deterministic,
          .is_batch_invariant = backend.is_batch_invariant,
          .depends_on_alignment = backend.depends_on_alignment,
          .ignores_hidden_nan = false,
          .drops_vanished_parts = backend.drops_vanished_parts,
          .layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16},
          .unavailable = backend.unavailable,
          .compute_capabilities = backend.compute_capabilities,
          .precision = backend.precision,
          .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
          .unsupported = backend.unsupported,
          .launch = [name](const ForwardArguments& a,
                           Device& device) { launch_torch_peer(name, call_of(a), device); },
          .timed_launch =
              [name](const ForwardArguments& a, Device& device, LaunchesInRow launches) {
                return time_torch_peer(name, call_of(a), device, launches);
              }};
}

const std::vector<ElementType> half_types{ElementType::fp16, ElementType::bf16};
const std::vector<ElementType> all_types{ElementType::fp32, ElementType::fp16, ElementType::bf16};

const KernelRegistration flash{
    kernel({.name = "torch_flash",
            .summary = "PyTorch's flash backend, FlashAttention-2, in a Python worker",
            .types = half_types,
            .precision = [](const Problem& p, const Plan&) { return fused_precision(p); },
            .unsupported = why_not_flash,
            .is_batch_invariant = false})};  // README.md, finding 4
const KernelRegistration flash_attention_3{
    kernel({.name = "flash_attention_3",
            .summary = "FlashAttention-3's forward pass (wheel fa3_fwd), in a Python worker",
            .types = {ElementType::bf16},
            .precision = flash_3_precision,
            .unsupported = why_not_flash,
            .source = "Q3; wheel fa3_fwd",
            .unavailable = why_no_flash_attention_3,
            .compute_capabilities = hopper_alone,
            .features = {.softcap = true}})};
// Its source takes multiples of 8 up to 256. It compiles for each, so these are asked for. Weights
// are added in fp32 before they are rounded, and O is rescaled whenever a maximum grows: it leaves
// rescales out on Blackwell alone (flash_attn/cute/softmax.py).
const KernelRegistration flash_attention_4{
    kernel({.name = "flash_attention_4",
            .summary = "FlashAttention-4's Hopper forward pass, in a Python worker",
            .types = half_types,
            .precision = [](const Problem& p, const Plan&) { return fused_precision(p); },
            .unsupported = why_not_flash_4,
            .source = "wheel flash-attn-4",
            .unavailable = why_no_flash_attention_4,
            .compute_capabilities = hopper_alone,
            .head_dims = {64, 96, 128, 192, 256}})};
// Head dims that its Hopper kernels have (is_fa3_prefill_head_dim_supported). Weights are added in
// fp32 before they are rounded (hopper/attention_updater.cuh), no keys are split.
const KernelRegistration flashinfer_prefill{
    kernel({.name = "flashinfer_prefill",
            .summary = "FlashInfer's prefill of ragged batches, backend fa3, in a Python worker",
            .types = {ElementType::bf16},
            .precision = [](const Problem& p, const Plan&) { return fused_precision(p); },
            .unsupported = why_not_flash,
            .source = "FlashInfer",
            .unavailable = why_no_flashinfer,
            .compute_capabilities = hopper_alone,
            .head_dims = {64, 128, 256}})};
const KernelRegistration kvcache{kernel(
    {.name = "flash_attention_3_kvcache",
     .summary = "FlashAttention-3 for decoding, its own splits (fa3_fwd), in a Python worker",
     .types = {ElementType::bf16},
     .precision = [](const Problem& p, const Plan&) { return fused_precision(p); },
     .unsupported = why_not_kvcache,
     .is_batch_invariant = false,  // as many splits as fill the GPU
     .source = "Q3; wheel fa3_fwd",
     .unavailable = why_no_flash_attention_3,
     .compute_capabilities = hopper_alone,
     .features = {.lengths = true},
     .drops_vanished_parts = true})};  // README.md, finding 9
const KernelRegistration efficient{
    kernel({.name = "torch_efficient",
            .summary = "PyTorch's memory-efficient backend, of CUTLASS, in a Python worker",
            .types = all_types,
            .precision = efficient_precision,
            .unsupported = why_not_efficient})};
const KernelRegistration cudnn{
    kernel({.name = "torch_cudnn",
            .summary = "PyTorch's cuDNN backend, in a Python worker",
            .types = half_types,
            .precision = [](const Problem& p, const Plan&) { return fused_precision(p); },
            .unsupported = why_not_cudnn,
            .masks = {Mask::none, Mask::causal_top_left},
            .is_deterministic = false})};  // README.md, finding 6
const KernelRegistration math{
    kernel({.name = "torch_math",
            .summary = "PyTorch's math backend, unfused and in fp32, in a Python worker",
            .types = all_types,
            .precision = math_precision,
            .unsupported = [](const Problem& p, const Plan&) { return why_sizes_do_not_fit(p); },
            .dataflow = Dataflow::standard,
            .is_batch_invariant = false,      // README.md, finding 4
            .depends_on_alignment = true})};  // README.md, finding 7

}  // namespace
}  // namespace attest
