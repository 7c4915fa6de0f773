// The family of 16-bit K and V as a kernel under test.
#include "core/run/registry.hpp"
#include "gpu/kernels/decode_mma/family.cuh"
#include "gpu/kernels/decode_mma/prefix_wgmma.cuh"
#include "gpu/primitives/cuda_type.cuh"

namespace attest {
namespace {

template <typename T>
std::span<const DecodeVariant> variants_of(std::int64_t head_dim) {
  if (head_dim == 64) return decode_variants<this_executor, T, 64>();
  if (head_dim == 128) return decode_variants<this_executor, T, 128>();
  if (head_dim == 256) return decode_variants<this_executor, T, 256>();
  return {};
}

std::span<const DecodeVariant> variants_for(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return variants_of<T>(problem.head_dim);
  });
}

/// The launch of shared chunks under Overlap::yes, or nullptr: not for this head dim.
template <typename T>
PrefixLaunch prefix_launch_of(std::int64_t head_dim) {
  if (head_dim == 64) return prefix_launch<this_executor, T, 64>();
  if (head_dim == 128) return prefix_launch<this_executor, T, 128>();
  return nullptr;
}

PrefixLaunch wide_prefix_for(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return prefix_launch_of<T>(problem.head_dim);
  });
}

struct Family {
  using Arguments = ForwardArguments;
  using Variant = DecodeVariant;
  static constexpr const char* head_dims = "64, 128, 256";
  static std::span<const Variant> variants(const Problem& problem) { return variants_for(problem); }
  static PrefixLaunch wide_prefix(const Problem& problem) { return wide_prefix_for(problem); }
};

const KernelRegistration registration{
    {.name = "decode_mma",
     .summary = "few queries: keys split over blocks, contiguous or in pages, grouped heads packed",
     .source = "V1, V2, V4, V5 [Flash-Decoding]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .head_dims = {64, 128, 256},
     .features = {.no_queries = true, .softcap = true, .lengths = true},
     .plan_depends_on_batch =
         [](const Plan& plan) { return plan.key_split_rule == KeySplitRule::stream; },
     .is_query_invariant = true,
     .plan_depends_on_queries =
         [](const Plan& plan) { return plan.key_split_rule != KeySplitRule::fixed_keys; },
     .reads_lengths = true,
     .ignores_hidden_nan = false,
     .layout_needs = {.pointer_alignment_bytes = 16,
                      .stride_alignment_bytes = 16,
                      .pages = Pages::also},
     .compute_capabilities = {.least = 80},
     .precision = decode_family::precision,
     .plans = decode_family::plans<Family>,
     .has_plan_rule = true,
     .unsupported = decode_family::unsupported<Family>,
     .workspace_bytes = decode_family::workspace_bytes,
     .counter_bytes = decode_family::counter_bytes,
     .launch = decode_family::run<Family>}};

}  // namespace
}  // namespace attest
