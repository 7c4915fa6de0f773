// cuDNN's scaled dot product attention as a kernel under test.
//
// What its PrecisionPlan rests on. cuDNN does not publish its roundings, so each is the worst that
// the documented interface (fp32 compute and intermediate types, 16-bit inputs and outputs) and the
// hardware allow:
//   score, value  tensor cores with fp32 accumulators: on sm_90 a step adds 16 products and the
//                 accumulator at F = 25 bits and truncates [Fasi et al.; measured on an H200]; on
//                 sm_80 8 products at F = 24, which costs more per term and is the plan elsewhere
//   scale         inside the exponent, 2^(s c - m c) with c = scale log2(e): the term for the
//                 rounding of m c is at least what a scale applied to the score costs
//   exp           ex2.approx of a folded argument, 2 ulp; rescales round their product as well
//   P             rounded to the input's format for P V; l adds P before that
//   order         unknown: a rescale after every 16 keys, the depth of one tensor-core step; any
//                 number of those parts may be split and merged by their LSE, the costliest way,
//                 O in fp32 between; l may be one chain over all keys
//   division      an approximate reciprocal (1 ulp) and a product
//   logarithm     lg2.approx, absolute error 2^-21.4 [CUDA C++ Programming Guide, __logf], times
//                 ln 2. l of a row of two keys or more may be 1 + tiny, where only this absolute
//                 error holds: relative to the ln 2 that the bound allows such a row it is 2^-20
//   LSE           m may be kept in units of log2
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/kernel.hpp"
#include "core/registry.hpp"
#include "gpu/peers/cudnn_library.hpp"
#include "gpu/peers/cudnn_sdpa_plan.hpp"
#include "gpu/runtime/device_info.hpp"

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

bool is_hopper_or_newer() {
  static const bool answer = why_no_gpu().empty() && device_info(0).compute_major >= 9;
  return answer;
}

PrecisionPlan precision(const Problem& problem, const Plan&) {
  const Accumulation tensor_core = is_hopper_or_newer() ? hopper() : ampere();
  ExpMethod exp = ex2_approx();
  exp.argument_error += 0x1p-24;  // a rescale by 2^fl(fl(m - m') c) rounds twice
  const std::int64_t parts = std::max<std::int64_t>(1, (problem.key_len + 15) / 16);
  return {.score = tensor_core,
          .value = tensor_core,
          .scale_after_dot = false,
          .exp = exp,
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = parts,
          .splits = parts,
          .normaliser_chain = problem.key_len,
          .division_error = 0x1p-22,
          .log_error = 0x1p-20,
          .lse = LseForm::log2,
          .merge = Merge::lse_pairs};
}

void run(const Arguments& arguments, Device& device) {
  CudnnSdpaPlan::of(arguments).run(arguments, device.native_stream());
}

const KernelRegistration registration{
    {.name = "cudnn_sdpa",
     .summary = "cuDNN's fused attention, through the cuDNN frontend",
     .source = "NVIDIA cuDNN 9",
     .executor = Executor::gpu,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
     .ignores_hidden_nan = false,  // README.md, finding 2
     // Loads of 16 bytes and TMA; a misaligned stride gives wrong results without a word
     // (cudnn-frontend#1571).
     .layout_needs = {.pointer_alignment_bytes = 16, .stride_alignment_bytes = 16},
     .unavailable = [] { return why_no_cudnn(); },
     .precision = precision,
     .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
     .unsupported = unsupported,
     .launch = run}};

}  // namespace
}  // namespace attest
