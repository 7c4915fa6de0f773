#include "core/operations/quantise.hpp"

#include <array>

#include "core/attention/quantiser.hpp"

namespace attest {
namespace {

ElementType number_format(const Problem& problem) {
  return problem.element_type;
}
ElementType code_format(const Problem& problem) {
  return format_with(problem.codes.k, problem.element_type);
}
ElementType scale_format(const Problem& problem) {
  return format_of_scales(problem.codes);
}

Shape shape_of_scales(const Problem& problem) {
  return scales_shape(key_shape(problem), problem.codes.k_scales);
}

/// A quotient an element.
double flops(const Problem& problem) {
  const std::int64_t rows =
      problem.length_seed == 0 ? problem.batch * problem.key_len : key_starts(problem).back();
  return static_cast<double>(rows * problem.kv_heads * problem.head_dim);
}

constexpr std::array<TensorSpec, 3> tensors{
    {{.name = "x", .label = "X", .rows = Rows::keys, .shape = key_shape, .format = number_format},
     {.name = "codes",
      .label = "codes",
      .role = TensorRole::output,
      .rows = Rows::keys,
      .shape = key_shape,
      .format = code_format},
     {.name = "scales",
      .label = "scales",
      .role = TensorRole::output,
      .rows = Rows::neither,
      .shape = shape_of_scales,
      .format = scale_format,
      .is_strided = false}}};

}  // namespace

constinit const Operation quantise_operation{
    .name = "quantise",
    .summary = "codes and scales from a tensor of numbers, K's shape, to the last bit",
    .tensors = tensors,
    .flops = flops,
    .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{quantise_operation};
}  // namespace

}  // namespace attest
