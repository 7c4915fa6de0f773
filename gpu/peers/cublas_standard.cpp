// Standard attention with cuBLAS: the unfused control with the products that a user of a framework
// has [K0 and KS of S3; F3 of S1 and S4; FA1 Alg. 0].
//
// Idea
//   Three launches: S = Q K^T, P = softmax(scale S) with LSE, O = P V. S lies in memory in fp32, P
//   in the inputs' format. Query heads that share a key head are one product: with contiguous
//   tensors their rows follow each other. A mask saves nothing.
//
// What its PrecisionPlan rests on
//   fp32          cuBLAS does not publish its order of summation. The bound holds for any: no term
//                 passes through more roundings than there are terms. Of TF32 the factors may be
//                 cut, which costs more than rounding.
//   16 bits       sums in fp32, on tensor cores (16 products a step, or 8) or, for a single row or
//                 odd sizes, by fused multiply-adds; 4 products a step at F = 25 cost more than any
//                 of the three.
//   softmax       ours: expf, one IEEE division a weight.
#include "gpu/peers/cublas_standard.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/runtime/cuda_error.hpp"

namespace attest {
namespace {

constexpr std::size_t max_workspace_bytes = std::size_t{3} << 33;  // 16 GiB of scores, and weights

template <CublasFp32 fp32>
std::optional<std::string> unsupported(const Problem& p, const Plan&) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  const bool on_tensor_cores = p.element_type != ElementType::fp32 || fp32 == CublasFp32::tf32;
  if (on_tensor_cores && p.head_dim % 8 != 0) {
    return fmt::format("head_dim is {}; allowed on tensor cores: multiples of 8", p.head_dim);
  }
  if (std::max({p.rows(), p.key_len, p.head_dim}) > largest / 8) {
    return fmt::format("{} rows and {} keys; cuBLAS counts in 32 bits", p.rows(), p.key_len);
  }
  if (p.rows() > 0 && p.key_len > static_cast<std::int64_t>(max_workspace_bytes) / 6 / p.rows()) {
    return fmt::format("the score matrix has {} x {} elements; allowed: up to 2^32 of them",
                       p.rows(), p.key_len);
  }
  return std::nullopt;
}

template <CublasFp32 fp32>
void run(const ForwardArguments& a, Device& device) {
  const Problem& p = a.problem;
  const ScoreMatrix matrix = score_matrix_of(p);
  const std::int64_t items = p.batch * p.kv_heads;
  const std::int64_t rows = p.query_heads / p.kv_heads * p.query_len;
  void* const stream = device.native_stream();
  const BatchedMatrix q{a.q, p.head_dim, rows * p.head_dim, p.element_type};
  const BatchedMatrix k{a.k, p.head_dim, p.key_len * p.head_dim, p.element_type, true};
  const BatchedMatrix v{a.v, p.head_dim, p.key_len * p.head_dim, p.element_type};
  const BatchedMatrix o{a.o, p.head_dim, rows * p.head_dim, p.element_type};
  const BatchedMatrix scores{a.workspace, matrix.pitch, rows * matrix.pitch, ElementType::fp32};
  const BatchedMatrix weights{static_cast<const std::byte*>(a.workspace) + matrix.weights_at_bytes,
                              matrix.pitch, rows * matrix.pitch, p.element_type};
  if (p.key_len > 0) {
    multiply_with_cublas(q, k, scores, items, rows, p.head_dim, p.key_len, fp32, stream);
  }
  launch_standard_softmax(a, device);
  if (p.key_len > 0) {
    multiply_with_cublas(weights, v, o, items, rows, p.key_len, p.head_dim, fp32, stream);
  } else {
    const std::size_t bytes =
        static_cast<std::size_t>(p.rows() * p.head_dim) * format_of(p.element_type).size_bytes;
    ATTEST_CUDA_CHECK(cudaMemsetAsync(a.o, 0, bytes, static_cast<cudaStream_t>(stream)));
  }
}

template <CublasFp32 fp32>
PrecisionPlan precision(const Problem& problem, const Plan&) {
  PrecisionPlan plan{.scale_after_dot = true,
                     .exp = library_expf(),
                     .weight_format = problem.element_type,
                     .rescale = Rescale::none,
                     .normaliser_chain = softmax_chain(problem),
                     .division_error = 0x1p-24,
                     .log_error = 0x1p-23};  // logf: 1 ulp
  if (problem.element_type != ElementType::fp32) {
    plan.score = plan.value = {Accumulation::Kind::tensor_core, 4, 25};
  } else if (fp32 == CublasFp32::tf32) {
    plan.score = plan.value = {Accumulation::Kind::tensor_core, 4, 25};
    plan.score_parts = plan.value_parts = {.format = Parts::Format::tf32, .count = 1, .cut = 1};
  }
  return plan;
}

template <CublasFp32 fp32>
KernelInfo kernel(std::string name, std::string summary, std::vector<ElementType> types) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .source = "K0, KS, F3; NVIDIA cuBLAS",
          .executor = Executor::gpu,
          .dataflow = Dataflow::standard,
          .element_types = std::move(types),
          .masks = {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right},
          .is_batch_invariant = false,  // README.md, finding 4
          .ignores_hidden_nan = false,  // a weight of 0 times a hidden value
          .layout_needs = {.contiguous_only = true, .pointer_alignment_bytes = 16},
          .unavailable = [] { return why_no_cublas(); },
          .precision = precision<fp32>,
          .plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; },
          .unsupported = unsupported<fp32>,
          .workspace_bytes = [](const Problem& p, const Plan&) { return score_matrix_of(p).bytes; },
          .launch = run<fp32>};
}

const KernelRegistration in_fp32{kernel<CublasFp32::fp32>(
    "cublas_standard", "standard attention: two cuBLAS products and a softmax, S and P in memory",
    {ElementType::fp32, ElementType::fp16, ElementType::bf16})};
const KernelRegistration in_tf32{kernel<CublasFp32::tf32>(
    "cublas_standard_tf32", "the same with products of fp32 factors in TF32", {ElementType::fp32})};

}  // namespace
}  // namespace attest
