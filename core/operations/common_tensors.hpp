#pragma once

#include <limits>
#include <string_view>

#include "core/attention/operation.hpp"

// Tensors that several operations have.
namespace attest {

[[nodiscard]] inline ElementType format_of_problem(const Problem& problem) {
  return problem.element_type;
}
[[nodiscard]] inline ElementType fp32_format(const Problem& /*problem*/) {
  return ElementType::fp32;
}

inline constexpr TensorSpec q_tensor{
    .name = "q", .label = "Q", .shape = query_shape, .format = format_of_problem};
inline constexpr TensorSpec k_tensor{
    .name = "k", .label = "K", .rows = Rows::keys, .shape = key_shape, .format = format_of_problem};
inline constexpr TensorSpec v_tensor{.name = "v",
                                     .label = "V",
                                     .rows = Rows::keys,
                                     .shape = value_shape,
                                     .format = format_of_problem};

/// O and LSE, as outputs.
inline constexpr TensorSpec o_tensor{.name = "o",
                                     .label = "O",
                                     .role = TensorRole::output,
                                     .shape = output_shape,
                                     .format = format_of_problem};
inline constexpr TensorSpec lse_tensor{.name = "lse",
                                       .label = "LSE",
                                       .role = TensorRole::output,
                                       .shape = lse_shape,
                                       .format = fp32_format,
                                       .is_strided = false,
                                       .absent = -std::numeric_limits<float>::infinity()};

/// A number a query row, of all heads, that is given.
[[nodiscard]] constexpr TensorSpec given_numbers(std::string_view name, std::string_view label,
                                                 Shape (*shape)(const Problem&)) {
  return {.name = name, .label = label, .shape = shape, .format = fp32_format, .is_strided = false};
}

/// An output that is contiguous in every case, whatever the lengths and pages.
[[nodiscard]] constexpr TensorSpec whole_output(std::string_view name, std::string_view label,
                                                Shape (*shape)(const Problem&),
                                                ElementType (*format)(const Problem&)) {
  return {.name = name,
          .label = label,
          .role = TensorRole::output,
          .rows = Rows::neither,
          .shape = shape,
          .format = format,
          .is_strided = false};
}

}  // namespace attest
