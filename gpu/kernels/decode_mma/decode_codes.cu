// The family of K and V in codes of 8 bits as a kernel under test: a cache of e4m3 or int8, half as
// many bytes to read, multiplied as 16-bit numbers [claims N2].
#include "core/run/registry.hpp"
#include "gpu/kernels/decode_mma/family.cuh"
#include "gpu/primitives/cuda_type.cuh"

namespace attest {
namespace {

template <typename T, Code code>
std::span<const CodesVariant> variants_of(std::int64_t head_dim) {
  if (head_dim == 64) return codes_variants<this_executor, T, code, 64>();
  if (head_dim == 128) return codes_variants<this_executor, T, code, 128>();
  return {};
}

std::span<const CodesVariant> variants_for(const Problem& problem) {
  return with_sixteen_bits(problem.element_type, [&]<typename T>(std::type_identity<T>) {
    return problem.codes.k == Code::int8 ? variants_of<T, Code::int8>(problem.head_dim)
                                         : variants_of<T, Code::e4m3>(problem.head_dim);
  });
}

struct Family {
  using Arguments = QuantisedArguments;
  using Variant = CodesVariant;
  static constexpr const char* head_dims = "64, 128";
  static std::span<const Variant> variants(const Problem& problem) { return variants_for(problem); }
  static PrefixLaunch wide_prefix(const Problem& /*problem*/) { return nullptr; }
};

std::optional<std::string> unsupported(const Problem& problem, const Plan& plan) {
  if (problem.codes.k != problem.codes.v) {
    return "k_code is " + std::string(name_of(problem.codes.k)) + " and v_code " +
           std::string(name_of(problem.codes.v)) + "; allowed: the same";
  }
  return decode_family::unsupported<Family>(problem, plan);
}

/// A score's scale, and O's, is one product more.
PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = decode_family::precision(problem, plan);
  result.score_scalings = result.value_scalings = 1;
  result.weight_format = ElementType::fp16;
  return result;
}

const KernelRegistration registration{
    {.operation = &quantised_operation,
     .name = "decode_codes",
     .summary =
         "few queries against keys and values in e4m3 or int8: decode_mma with 16-bit products",
     .source = "N2 [Flash-Decoding]",
     .executor = this_executor,
     .dataflow = Dataflow::queries_outside,
     .element_types = {ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right, Mask::window_top_left,
               Mask::window_bottom_right},
     .head_dims = {64, 128},
     .features = {.no_queries = true, .softcap = true, .lengths = true},
     .codes = {.q = {Code::none},
               .k = {Code::e4m3, Code::int8},
               .v = {Code::e4m3, Code::int8},
               .q_scales = {Scales::none},
               .k_scales = {Scales::head, Scales::none, Scales::block, Scales::row},
               .v_scales = {Scales::head, Scales::none, Scales::column}},
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
     .precision = precision,
     .plans = decode_family::plans<Family>,
     .has_plan_rule = true,
     .unsupported = unsupported,
     .workspace_bytes = decode_family::workspace_bytes,
     .counter_bytes = decode_family::counter_bytes,
     .launch = decode_family::run<Family>}};

}  // namespace
}  // namespace attest
