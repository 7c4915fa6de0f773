// cuDNN's scaled dot product attention as a kernel under test.
// Its PrecisionPlan is that of any fused kernel (fused_precision.hpp): cuDNN does not publish its
// roundings, only its interface, fp32 compute and intermediate types, 16-bit inputs and outputs.
#include <fmt/format.h>

#include <limits>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/peers/cudnn_sdpa_plan.hpp"
#include "gpu/peers/fused_precision.hpp"

namespace attest {
namespace {

/// What cuDNN's documentation and the frontend's checks exclude.
std::optional<std::string> unsupported(const Problem& problem, const Plan&) {
  const auto outside = [](std::string what, std::int64_t got, std::string allowed) {
    return std::move(what) + " is " + std::to_string(got) + "; cuDNN allows " + std::move(allowed);
  };
  if (problem.head_dim % 8 != 0 || problem.head_dim > 256) {
    return outside("head_dim", problem.head_dim, "multiples of 8 up to 256");
  }
  if (problem.key_len == 0) return outside("key_len", 0, "at least 1");
  if (!(problem.scale >= std::numeric_limits<float>::min())) {
    return fmt::format(
        "scale is {}; cuDNN is right for positive normal numbers only (gpu/peers/README.md, "
        "finding 1)",
        problem.scale);
  }
  if (problem.mask == Mask::causal_bottom_right && problem.query_len > problem.key_len) {
    return outside(
        "query_len", problem.query_len,
        "at most key_len, " + std::to_string(problem.key_len) + ", with a bottom-right mask");
  }
  return std::nullopt;
}

void run(const ForwardArguments& arguments, Device& device) {
  CudnnSdpaPlan::of(arguments).run(arguments, device.native_stream());
  note_library(cudnn_version());
}

const KernelRegistration registration{
    {.name = "cudnn_sdpa",
     .summary = "cuDNN's fused attention, through the cuDNN frontend",
     .source = "NVIDIA cuDNN 9",
     .executor = Executor::gpu,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .is_deterministic = false,    // README.md, finding 6
     .shares_reference = true,     // nothing is known of how its rows decide
     .ignores_hidden_nan = false,  // README.md, finding 2
     // Loads of 16 bytes and TMA; a misaligned stride gives wrong results without a word
     // (cudnn-frontend#1571).
     .layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16},
     .unavailable = [] { return why_no_cudnn(); },
     .precision = [](const Problem& problem, const Plan&) { return fused_precision(problem); },
     .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
     .unsupported = unsupported,
     .launch = run}};

}  // namespace
}  // namespace attest
