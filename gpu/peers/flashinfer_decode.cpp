// FlashInfer's decoding over pages as a kernel under test [V1 of decoding].
//
// BatchDecodeWithPagedKVCacheWrapper on tensor cores, run by the Python worker. FlashInfer compiles
// a kernel for each type and head dim when it is first asked for; one is claimed.
#include <fmt/format.h>

#include <limits>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/fused_precision.hpp"
#include "gpu/peers/torch_peer.hpp"

namespace attest {
namespace {

constexpr const char* kernel_name = "flashinfer_decode";

std::optional<std::string> unsupported(const Problem& p, const Plan&) {
  if (p.query_len != 1) {
    return fmt::format("query_len is {}; allowed: 1, it decodes", p.query_len);
  }
  if (p.key_len == 0) return "key_len is 0; allowed: at least 1";
  if (p.scale >= std::numeric_limits<float>::min()) return std::nullopt;
  return fmt::format("scale is {}; allowed: positive normal numbers", p.scale);
}

/// Roundings as its headers say: the tensor cores add the rows of P, whose weights are rounded by
/// then.
PrecisionPlan precision(const Problem& problem, const Plan&) {
  PrecisionPlan plan = fused_precision(problem);
  plan.sums_rounded_weights = true;
  return plan;
}

const KernelRegistration registration{
    {.name = kernel_name,
     .summary = "FlashInfer's decoding over pages, in a Python worker",
     .source = "FlashInfer",
     .executor = Executor::gpu,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::bf16},
     .masks = {Mask::none},
     .head_dims = {128},
     .is_batch_invariant = false,  // chunks of keys fill the GPU
     .ignores_hidden_nan = false,
     // It takes one set of strides for K and V.
     .layout_needs = {.contiguous_only = true,
                      .pointer_alignment_bytes = 16,
                      .tables = TableForm::dense,
                      .pages = Pages::always},
     .unavailable = why_no_flashinfer,
     .compute_capabilities = {.least = 80},
     .precision = precision,
     .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
     .unsupported = unsupported,
     .launch = [](const ForwardArguments& a,
                  Device& device) { launch_torch_peer(kernel_name, call_of(a), device); },
     .timed_launch =
         [](const ForwardArguments& a, Device& device, LaunchesInRow launches) {
           return time_torch_peer(kernel_name, call_of(a), device, launches);
         }}};

}  // namespace
}  // namespace attest
