#pragma once

#include "core/attention/operation.hpp"
#include "core/operations/common_tensors.hpp"
#include "core/operations/forward.hpp"

// What the operations that give gradients of attention have in common.
namespace attest {

inline constexpr TensorSpec do_tensor{
    .name = "do", .label = "dO", .shape = output_shape, .format = format_of_problem};
/// dQ, dK and dV, in the shapes of Q, K and V.
inline constexpr TensorSpec dq_tensor{.name = "dq",
                                      .label = "dQ",
                                      .role = TensorRole::output,
                                      .shape = query_shape,
                                      .format = format_of_problem};
inline constexpr TensorSpec dk_tensor{.name = "dk",
                                      .label = "dK",
                                      .role = TensorRole::output,
                                      .rows = Rows::keys,
                                      .shape = key_shape,
                                      .format = format_of_problem};
inline constexpr TensorSpec dv_tensor{.name = "dv",
                                      .label = "dV",
                                      .role = TensorRole::output,
                                      .rows = Rows::keys,
                                      .shape = value_shape,
                                      .format = format_of_problem};

/// FLOP of so many products over head_dim and over V's columns, of the pairs that forward_flops()
/// counts with one of each.
[[nodiscard]] inline double product_flops(const Problem& problem, int over_head_dim,
                                          int over_output_dim) {
  const auto d = static_cast<double>(problem.head_dim);
  const auto dv = static_cast<double>(problem.output_dim());
  return forward_flops(problem) / (2 * (d + dv)) * 2 * (over_head_dim * d + over_output_dim * dv);
}

}  // namespace attest
