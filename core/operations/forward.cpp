#include "core/operations/forward.hpp"

#include <algorithm>
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

std::optional<InputIndex> holder_of_values(const Problem& problem) {
  return problem.values == Values::in_keys ? std::optional(forward::k) : std::nullopt;
}

/// V in keys is copied from them.
void complete(const Problem& problem, Inputs& inputs) {
  if (problem.values != Values::in_keys) return;
  Tensor<float>& v = inputs[forward::v];
  const Shape& shape = v.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const auto to = v.row(b, h, n);
        std::ranges::copy(inputs[forward::k].row(b, h, n).first(to.size()), to.begin());
      }
    }
  }
}

constexpr std::array<TensorSpec, 5> tensors{
    {{.name = "q", .label = "Q", .shape = query_shape, .format = of_problem},
     {.name = "k", .label = "K", .rows = Rows::keys, .shape = key_shape, .format = of_problem},
     {.name = "v",
      .label = "V",
      .rows = Rows::keys,
      .shape = value_shape,
      .format = of_problem,
      .part_of = holder_of_values},
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
                                            .complete = complete,
                                            .flops = forward_flops,
                                            .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{forward_operation};
}  // namespace

}  // namespace attest
