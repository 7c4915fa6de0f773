// FlashAttention-3's forward pass of e4m3 as a kernel under test [N2; FA3 3.3].
//
// What its sources say (hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp, softmax.h): Q K^T and P V by
// wgmma of e4m3, P times 2^8 so that weights are in (0, 256], l from weights of fp32, one scale of
// Q, K and V for each KV head. P V of all keys is one chain of the tensor core's accumulator, which
// keeps 13 bits: the declared roundings say so, and beyond some thousand keys no bound follows from
// them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/operations/quantised_arguments.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/fused_precision.hpp"
#include "gpu/peers/torch_peer.hpp"

namespace attest {
namespace {

constexpr const char* kernel_name = "flash_attention_3_fp8";

std::optional<std::string> unsupported(const Problem& p, const Plan&) {
  if (p.key_len == 0) return "key_len is 0; allowed: at least 1";
  if (p.codes.q_scales == Scales::head && p.query_heads != p.kv_heads) {
    return fmt::format(
        "{} query heads with a scale each and {} KV heads; allowed: as many, as its scale of Q is "
        "that of a KV head",
        p.query_heads, p.kv_heads);
  }
  if (p.mask == Mask::causal_bottom_right && p.query_len > p.key_len) {
    return fmt::format("query_len is {}; allowed with a bottom-right mask: at most key_len, {}",
                       p.query_len, p.key_len);
  }
  if (p.scale >= std::numeric_limits<float>::min()) return std::nullopt;
  return fmt::format("scale is {}; allowed: positive normal numbers", p.scale);
}

PrecisionPlan precision(const Problem& problem, const Plan&) {
  PrecisionPlan plan = fused_precision(problem);
  constexpr std::int64_t least_tile = 64;
  plan.score = plan.value = hopper_fp8();
  plan.weight_format = ElementType::e4m3;
  plan.weight_scale = 0x1p8;
  plan.score_scalings = 2;
  plan.value_scalings = 1;
  plan.splits = 1;
  plan.blocks = std::max<std::int64_t>(1, (problem.key_len + least_tile - 1) / least_tile);
  return plan;
}

const KernelRegistration registration{
    {.operation = &quantised_operation,
     .name = kernel_name,
     .summary = "FlashAttention-3's forward pass of e4m3 (fa3_fwd), in a Python worker",
     .source = "N2; wheel fa3_fwd",
     .executor = Executor::gpu,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::bf16},
     .masks = {Mask::none, Mask::causal_bottom_right},
     .head_dims = {64, 128, 256},
     .codes = {.q = {Code::e4m3},
               .k = {Code::e4m3},
               .v = {Code::e4m3},
               .q_scales = {Scales::none, Scales::head},
               .k_scales = {Scales::head, Scales::none},
               .v_scales = {Scales::head, Scales::none}},
     .ignores_hidden_nan = false,
     .layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16},
     .unavailable = why_no_flash_attention_3,
     .compute_capabilities = hopper_alone,
     .precision = precision,
     .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
     .unsupported = unsupported,
     .launch = [](const QuantisedArguments& a,
                  Device& device) { launch_torch_peer(kernel_name, call_of(a), device); },
     .timed_launch =
         [](const QuantisedArguments& a, Device& device, LaunchesInRow launches) {
           return time_torch_peer(kernel_name, call_of(a), device, launches);
         }}};

}  // namespace
}  // namespace attest
