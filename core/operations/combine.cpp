#include "core/operations/combine.hpp"

#include <array>
#include <limits>

namespace attest {
namespace {

Shape partial_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.parts * problem.query_len, problem.head_dim};
}

Shape partial_lse_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.parts * problem.query_len, 1};
}

Shape merged_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.query_len, problem.head_dim};
}

ElementType partial_format(const Problem& problem) {
  return problem.partial_type;
}

ElementType output_format(const Problem& problem) {
  return problem.element_type;
}

ElementType always_fp32(const Problem& /*problem*/) {
  return ElementType::fp32;
}

/// A product and a sum an element of O_p.
double flops(const Problem& problem) {
  const Shape shape = partial_shape(problem);
  return 2.0 * static_cast<double>(shape[0] * shape[1] * shape[2] * shape[3]);
}

constexpr std::array<TensorSpec, 4> tensors{
    {{.name = "partial_o", .label = "O_p", .shape = partial_shape, .format = partial_format},
     {.name = "partial_lse",
      .label = "LSE_p",
      .shape = partial_lse_shape,
      .format = always_fp32,
      .is_strided = false},
     {.name = "o",
      .label = "O",
      .role = TensorRole::output,
      .shape = merged_shape,
      .format = output_format},
     {.name = "lse",
      .label = "LSE",
      .role = TensorRole::output,
      .shape = lse_shape,
      .format = always_fp32,
      .is_strided = false,
      .absent = -std::numeric_limits<float>::infinity()}}};

}  // namespace

constinit const Operation combine_operation{
    .name = "combine",
    .summary = "O and LSE from partial results over disjoint keys: split keys, rings",
    .tensors = tensors,
    .flops = flops,
    .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{combine_operation};
}  // namespace

}  // namespace attest
