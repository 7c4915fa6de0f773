#include "core/operations/quantised.hpp"

#include <array>

#include "core/attention/quantiser.hpp"
#include "core/operations/common_tensors.hpp"

namespace attest {
namespace {

ElementType query_format(const Problem& problem) {
  return format_with(problem.codes.q, problem.element_type);
}
ElementType key_format(const Problem& problem) {
  return format_with(problem.codes.k, problem.element_type);
}
ElementType value_format(const Problem& problem) {
  return format_with(problem.codes.v, problem.element_type);
}
ElementType scale_format(const Problem& problem) {
  return format_of_scales(problem.codes);
}

Shape query_scales(const Problem& problem) {
  return scales_shape(query_shape(problem), problem.codes.q_scales);
}
Shape key_scales(const Problem& problem) {
  return scales_shape(key_shape(problem), problem.codes.k_scales);
}
Shape value_scales(const Problem& problem) {
  return scales_shape(value_shape(problem), problem.codes.v_scales);
}

/// Codes and scales of what a family of forward's inputs made. Scales beside numbers that are no
/// codes are 1.
void complete(const Problem& problem, Inputs& inputs) {
  const auto make = [&](InputIndex tensor, InputIndex scales, Scales kind, const auto& rows_of) {
    const ElementType format = (*problem.operation)[tensor].format(problem);
    if (!is_code(format)) {
      inputs[scales] = Tensor<float>(scales_shape(inputs[tensor].shape(), kind), 1.0F);
      return;
    }
    QuantisedTensor made =
        quantise(inputs[tensor], format, kind, rows_of, problem.codes.scale_format);
    inputs[tensor] = std::move(made.codes);
    inputs[scales] = std::move(made.scales);
  };
  const auto queries = [&](std::int64_t entry) { return problem.query_len_of(entry); };
  const auto keys = [&](std::int64_t entry) { return problem.key_len_of(entry); };
  make(quantised::q, quantised::q_scale, problem.codes.q_scales, queries);
  make(quantised::k, quantised::k_scale, problem.codes.k_scales, keys);
  make(quantised::v, quantised::v_scale, problem.codes.v_scales, keys);
}

constexpr std::array<TensorSpec, 8> tensors{
    {{.name = "q", .label = "Q", .shape = query_shape, .format = query_format},
     {.name = "k", .label = "K", .rows = Rows::keys, .shape = key_shape, .format = key_format},
     {.name = "v", .label = "V", .rows = Rows::keys, .shape = value_shape, .format = value_format},
     {.name = "q_scale",
      .label = "Q's scales",
      .rows = Rows::neither,
      .shape = query_scales,
      .format = scale_format},
     {.name = "k_scale",
      .label = "K's scales",
      .rows = Rows::neither,
      .shape = key_scales,
      .format = scale_format},
     {.name = "v_scale",
      .label = "V's scales",
      .rows = Rows::neither,
      .shape = value_scales,
      .format = scale_format},
     o_tensor,
     lse_tensor}};

}  // namespace

constinit const Operation quantised_operation{
    .name = "quantised",
    .summary = "O and LSE of attention from codes of 8 or 4 bits and their scales",
    .tensors = tensors,
    .extends = &forward_operation,
    .complete = complete,
    .flops = forward_flops,
    .bytes = tensor_bytes};

RealInputs quantised::numbers_of(const Problem& problem, const Inputs& inputs) {
  RealInputs numbers;
  numbers[q] = dequantise(inputs[q], inputs[q_scale], problem.codes.q_scales);
  numbers[k] = dequantise(inputs[k], inputs[k_scale], problem.codes.k_scales);
  numbers[v] = dequantise(inputs[v], inputs[v_scale], problem.codes.v_scales);
  return numbers;
}

namespace {
const OperationRegistration registration{quantised_operation};
}  // namespace

}  // namespace attest
