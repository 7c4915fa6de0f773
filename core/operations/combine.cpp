#include "core/operations/combine.hpp"

#include <array>

#include "core/operations/common_tensors.hpp"

namespace attest {
namespace {

Shape partial_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.parts * problem.query_len, problem.head_dim};
}

Shape partial_lse_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.parts * problem.query_len, 1};
}

ElementType partial_format(const Problem& problem) {
  return problem.partial_type;
}

/// A product and a sum an element of O_p.
double flops(const Problem& problem) {
  const Shape shape = partial_shape(problem);
  return 2.0 * static_cast<double>(shape[0] * shape[1] * shape[2] * shape[3]);
}

/// O has as many columns as O_p, whatever value_dim.
constexpr TensorSpec merged_tensor() {
  TensorSpec o = o_tensor;
  o.shape = query_shape;
  return o;
}

constexpr std::array<TensorSpec, 4> tensors{
    {{.name = "partial_o", .label = "O_p", .shape = partial_shape, .format = partial_format},
     given_numbers("partial_lse", "LSE_p", partial_lse_shape),
     merged_tensor(),
     lse_tensor}};

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
