#pragma once

#include "core/attention/operation.hpp"
#include "core/attention/shared_bias.hpp"
#include "core/inputs/score_operands.hpp"
#include "core/operations/common_tensors.hpp"

// Tensors of score modifications, which attention and its gradients have in common.
namespace attest {

/// No columns where there are none.
[[nodiscard]] inline Shape sinks_shape(const Problem& problem) {
  return {1, problem.query_heads, 1, problem.sinks == Sinks::given ? 1 : 0};
}
[[nodiscard]] inline Shape slopes_shape(const Problem& problem) {
  return {1, problem.query_heads, 1, problem.slopes == Slopes::given ? 1 : 0};
}
[[nodiscard]] inline Shape bias_shape(const Problem& problem) {
  return {entries_share_bias(problem) ? 1 : problem.batch,
          heads_share_bias(problem) ? 1 : problem.query_heads, problem.query_len,
          problem.bias == Bias::none ? 0 : problem.key_len};
}

inline constexpr TensorSpec sinks_tensor{.name = "sinks",
                                         .label = "sinks",
                                         .rows = Rows::neither,
                                         .shape = sinks_shape,
                                         .format = fp32_format,
                                         .is_strided = false,
                                         .draw = drawn_sinks};
inline constexpr TensorSpec slopes_tensor{.name = "slopes",
                                          .label = "slopes",
                                          .rows = Rows::neither,
                                          .shape = slopes_shape,
                                          .format = fp32_format,
                                          .is_strided = false,
                                          .draw = drawn_slopes};
inline constexpr TensorSpec bias_tensor{.name = "bias",
                                        .label = "bias",
                                        .rows = Rows::neither,
                                        .shape = bias_shape,
                                        .format = fp32_format,
                                        .is_strided = false,
                                        .is_of_pairs = true,
                                        .draw = drawn_bias};

}  // namespace attest
