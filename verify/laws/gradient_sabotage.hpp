#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/operations/backward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/verdict.hpp"

// Every law of gradients against a saboteur, as in sabotage.hpp.
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
  const KernelInfo* const correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.launch = [&](const Arguments& a, Device& device) {
    correct->launch(a, device);
    sabotage(a);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

/// The law holds for the kernel as it is and fails for the spoilt one.
inline void expect_gradients_caught(const std::string& law, const GradientSabotage& sabotage,
                                    const Case& c = gradient_case()) {
  const auto nothing = [](const BackwardArguments&) {};
  EXPECT_EQ(verdict_of_gradients(law, nothing, c), Verdict::passed) << law;
  EXPECT_EQ(verdict_of_gradients(law, sabotage, c), Verdict::failed) << law;
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
