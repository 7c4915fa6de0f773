#include "core/operations/quantise.hpp"

#include <array>

#include "core/attention/quantiser.hpp"
#include "core/operations/common_tensors.hpp"

namespace attest {
namespace {

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
    {{.name = "x",
      .label = "X",
      .rows = Rows::keys,
      .shape = key_shape,
      .format = format_of_problem},
     {.name = "codes",
      .label = "codes",
      .role = TensorRole::output,
      .rows = Rows::keys,
      .shape = key_shape,
      .format = code_format},
     whole_output("scales", "scales", shape_of_scales, scale_format)}};

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
