#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/verdict.hpp"

// Every law against a saboteur: a correct kernel whose result is then spoilt in the one way the law
// is for.
namespace attest {

using Sabotage = std::function<void(const ForwardArguments&)>;

inline float* o_row(const ForwardArguments& a, std::int64_t b, std::int64_t h, std::int64_t n) {
  return static_cast<float*>(a.o) + a.o_strides.offset(b, h, n);
}

inline Case plain_case() {
  return {.kernel = "o5_deferred",
          .problem = {.batch = 2,
                      .query_heads = 4,
                      .kv_heads = 2,
                      .query_len = 9,
                      .key_len = 7,
                      .head_dim = 16,
                      .mask = Mask::causal_bottom_right,
                      .scale = default_scale(16)},
          .plan = {.key_tile = 3},
          .layouts = ForwardLayouts{.k = {DimOrder::bnhd, 3, 1}, .o = {DimOrder::bnhd, 5, 2}},
          .inputs = {.seed = 11}};
}

/// `change` makes the kernel claim less.
inline Verdict verdict_of(const std::string& law, const Case& c, const Sabotage& sabotage,
                          const std::function<void(KernelInfo&)>& change = {}) {
  const KernelInfo* correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  if (change) change(kernel);
  kernel.launch = [&](const ForwardArguments& a, Device& device) {
    correct->launch(a, device);
    sabotage(a);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

/// The law holds for the kernel as it is and fails for the spoilt one.
inline void expect_caught(const std::string& law, const Sabotage& sabotage,
                          const Case& c = plain_case()) {
  ASSERT_NE(find_law(law), nullptr) << law;
  EXPECT_EQ(verdict_of(law, c, [](const ForwardArguments&) {}), Verdict::passed) << law;
  EXPECT_EQ(verdict_of(law, c, sabotage), Verdict::failed) << law;
}

}  // namespace attest
