#pragma once

#include <functional>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/spoilt_kernel_test.hpp"

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
  return verdict_of_spoilt<ForwardArguments>(law, c, sabotage, change);
}

inline void expect_caught(const std::string& law, const Sabotage& sabotage,
                          const Case& c = plain_case()) {
  expect_law_catches<ForwardArguments>(law, c, sabotage);
}

}  // namespace attest
