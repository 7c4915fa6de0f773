#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/operations/backward_arguments.hpp"
#include "verify/laws/spoilt_kernel_test.hpp"

// Every law of gradients against a saboteur, as in sabotage_test.hpp.
namespace attest {

using GradientSabotage = std::function<void(const BackwardArguments&)>;

inline Case gradient_case() {
  return {.kernel = "backward_standard",
          .problem = {.operation = &backward_operation,
                      .batch = 2,
                      .query_heads = 4,
                      .kv_heads = 2,
                      .query_len = 9,
                      .key_len = 7,
                      .head_dim = 8,
                      .mask = Mask::causal_bottom_right,
                      .scale = default_scale(8)},
          .inputs = {.seed = 11}};
}

inline Verdict verdict_of_gradients(const std::string& law, const GradientSabotage& sabotage,
                                    const Case& c = gradient_case()) {
  return verdict_of_spoilt<BackwardArguments>(law, c, sabotage);
}

inline void expect_gradients_caught(const std::string& law, const GradientSabotage& sabotage,
                                    const Case& c = gradient_case()) {
  expect_law_catches<BackwardArguments>(law, c, sabotage);
}

inline std::int64_t elements_of(const Shape& shape) {
  return shape[0] * shape[1] * shape[2] * shape[3];
}

// Layouts of these cases are contiguous.
inline std::span<const float> values_of(const void* tensor, const Shape& shape) {
  return {static_cast<const float*>(tensor), static_cast<std::size_t>(elements_of(shape))};
}
inline std::span<float> values_of(void* tensor, const Shape& shape) {
  return {static_cast<float*>(tensor), static_cast<std::size_t>(elements_of(shape))};
}

}  // namespace attest
