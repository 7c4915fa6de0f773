#include "core/operations/gradient.hpp"

#include <array>

#include "core/operations/forward.hpp"

namespace attest {
namespace {

ElementType of_problem(const Problem& problem) {
  return problem.element_type;
}

/// Six products: S, O, dP and the three uses of P and dS. What is formed twice counts once.
double flops(const Problem& problem) {
  const auto d = static_cast<double>(problem.head_dim);
  const auto dv = static_cast<double>(problem.output_dim());
  return forward_flops(problem) / (2 * (d + dv)) * 2 * (3 * d + 3 * dv);
}

constexpr std::array<TensorSpec, 7> tensors{
    {{.name = "q", .label = "Q", .shape = query_shape, .format = of_problem},
     {.name = "k", .label = "K", .rows = Rows::keys, .shape = key_shape, .format = of_problem},
     {.name = "v", .label = "V", .rows = Rows::keys, .shape = value_shape, .format = of_problem},
     {.name = "do", .label = "dO", .shape = output_shape, .format = of_problem},
     {.name = "dq",
      .label = "dQ",
      .role = TensorRole::output,
      .shape = query_shape,
      .format = of_problem},
     {.name = "dk",
      .label = "dK",
      .role = TensorRole::output,
      .rows = Rows::keys,
      .shape = key_shape,
      .format = of_problem},
     {.name = "dv",
      .label = "dV",
      .role = TensorRole::output,
      .rows = Rows::keys,
      .shape = value_shape,
      .format = of_problem}}};

}  // namespace

constinit const Operation gradient_operation{
    .name = "gradient",
    .summary = "dQ, dK and dV of attention from Q, K, V and dO: forward and backward pass in one",
    .tensors = tensors,
    .extends = &forward_operation,
    .flops = flops,
    .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{gradient_operation};
}  // namespace

}  // namespace attest
