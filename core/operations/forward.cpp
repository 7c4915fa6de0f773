#include "core/operations/forward.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/inputs/epilogue_operands.hpp"
#include "core/inputs/score_operands.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/common_tensors.hpp"
#include "core/operations/score_tensors.hpp"

namespace attest {
namespace {

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

constexpr TensorSpec values_tensor() {
  TensorSpec v = v_tensor;
  v.part_of = holder_of_values;
  return v;
}

/// No columns where there is none.
Shape gate_shape(const Problem& problem) {
  Shape shape = output_shape(problem);
  if (problem.gate == OutputGate::none) shape[3] = 0;
  return shape;
}

Shape residual_shape(const Problem& problem) {
  Shape shape = output_shape(problem);
  if (problem.residual == Residual::none) shape[3] = 0;
  return shape;
}

/// An operand of the epilogue, contiguous.
constexpr TensorSpec epilogue_operand(std::string_view name, Shape (*shape)(const Problem&),
                                      decltype(TensorSpec::draw) draw) {
  return {.name = name,
          .label = name,
          .shape = shape,
          .format = format_of_problem,
          .is_strided = false,
          .draw = draw};
}

constexpr std::array<TensorSpec, 10> tensors{
    {q_tensor, k_tensor, values_tensor(), sinks_tensor, slopes_tensor, bias_tensor,
     epilogue_operand("gate", gate_shape, drawn_gate),
     epilogue_operand("residual", residual_shape, drawn_residual), o_tensor, lse_tensor}};

std::int64_t place_along(std::int64_t size, std::int64_t index) {
  return size == 1 ? 0 : index;
}

}  // namespace

InputIndex forward::sinks_of(const Problem& problem) {
  return problem.operation == &backward_operation ? backward::sinks : forward::sinks;
}

InputIndex forward::slopes_of(const Problem& problem) {
  return problem.operation == &backward_operation ? backward::slopes : forward::slopes;
}

InputIndex forward::biases_of(const Problem& problem) {
  return problem.operation == &backward_operation ? backward::bias : forward::bias;
}

float forward::sink_of(const Problem& problem, const Inputs& inputs, std::int64_t h) {
  if (problem.sinks == Sinks::none) return -std::numeric_limits<float>::infinity();
  return inputs[sinks_of(problem)].at(0, h, 0, 0);
}

float forward::bias_of(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h,
                       std::int64_t query, std::int64_t key) {
  if (problem.bias == Bias::none) return 0;
  const Tensor<float>& bias = inputs[biases_of(problem)];
  return bias.at(place_along(bias.shape()[0], b), place_along(bias.shape()[1], h), query, key);
}

double forward::alibi_of(const Problem& problem, const Inputs& inputs, std::int64_t b,
                         std::int64_t h, std::int64_t query, std::int64_t key) {
  if (problem.slopes == Slopes::none) return 0;
  const std::int64_t distance =
      key_distance(problem.mask, problem.query_len_of(b), problem.key_len_of(b), query, key);
  // 24 bits of the slope and as many of the distance: the product is exact.
  return -static_cast<double>(inputs[slopes_of(problem)].at(0, h, 0, 0)) *
         static_cast<double>(distance < 0 ? -distance : distance);
}

float forward::gate_of(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h,
                       std::int64_t query, std::int64_t column) {
  return problem.gate == OutputGate::none ? 1.0F : inputs[gate].at(b, h, query, column);
}

float forward::residual_of(const Problem& problem, const Inputs& inputs, std::int64_t b,
                           std::int64_t h, std::int64_t query, std::int64_t column) {
  return problem.residual == Residual::none ? 0.0F : inputs[residual].at(b, h, query, column);
}

bool forward::sees(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h,
                   std::int64_t query, std::int64_t key) {
  return problem.sees(b, query, key) &&
         bias_of(problem, inputs, b, h, query, key) != -std::numeric_limits<float>::infinity();
}

std::vector<std::int64_t> forward::keys_of_row(const Problem& problem, const Inputs& inputs,
                                               std::int64_t b, std::int64_t h, std::int64_t query) {
  std::vector<std::int64_t> keys = visible_keys_of(problem, b, query);
  if (problem.bias == Bias::none) return keys;
  std::erase_if(keys, [&](std::int64_t key) { return !sees(problem, inputs, b, h, query, key); });
  return keys;
}

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
