#include "core/operations/forward.hpp"

#include <array>
#include <limits>

namespace attest {
namespace {

ElementType of_problem(const Problem& problem) {
  return problem.element_type;
}

ElementType always_fp32(const Problem& /*problem*/) {
  return ElementType::fp32;
}

constexpr std::array<TensorSpec, 5> tensors{
    {{.name = "q", .label = "Q", .shape = query_shape, .format = of_problem},
     {.name = "k", .label = "K", .rows = Rows::keys, .shape = key_shape, .format = of_problem},
     {.name = "v", .label = "V", .rows = Rows::keys, .shape = value_shape, .format = of_problem},
     {.name = "o",
      .label = "O",
      .role = TensorRole::output,
      .shape = output_shape,
      .format = of_problem},
     {.name = "lse",
      .label = "LSE",
      .role = TensorRole::output,
      .shape = lse_shape,
      .format = always_fp32,
      .is_strided = false,
      .absent = -std::numeric_limits<float>::infinity()}}};

}  // namespace

// Other objects that are made before main() copy Problems, which point here.
constinit const Operation forward_operation{.name = "forward",
                                            .summary = "O and LSE of attention from Q, K and V",
                                            .tensors = tensors,
                                            .flops = forward_flops,
                                            .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{forward_operation};
}  // namespace

}  // namespace attest
