#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

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

/// Case of the kernel that has every score modification and every epilogue, in tiles of 4 rows and
/// 8 keys.
inline Case every_shape_case(const std::string& problem) {
  return {.kernel = "m6_every_shape",
          .problem = problem_from_string(problem),
          .plan = {.query_tile = 4, .key_tile = 8, .key_splits = 1, .pack_gqa = PackGqa::no},
          .layouts = ForwardLayouts{.k = {DimOrder::bnhd, 3, 1}, .o = {DimOrder::bnhd, 5, 2}},
          .inputs = {.seed = 11}};
}

/// Expects that kernel to pass every law on so many seeds of each problem, with key splits too.
inline void expect_every_law_passed(const std::vector<std::string>& problems, std::uint64_t seeds) {
  for (const std::string& problem : problems) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Case c = every_shape_case(problem);
      c.inputs.seed = seed;
      if (seed % 2 == 0)
        c.plan = {.query_tile = 8, .key_tile = 16, .key_splits = 3, .pack_gqa = PackGqa::no};
      HostMemoryDevice device;
      attest::Run run(*find_kernel(c.kernel, Executor::cpu), c, device);
      const CaseVerdict verdict = verify_case(run, {.every_law = true});
      EXPECT_EQ(verdict.verdict, Verdict::passed)
          << problem << ' ' << seed << ": "
          << (verdict.failure ? describe(*verdict.failure, run.kernel()) : verdict.reason);
    }
  }
}

/// Nudges an element of O by one ulp.
inline void nudge_output(const ForwardArguments& a) {
  float* const o = o_row(a, 0, 0, 0);
  o[0] = std::nextafter(o[0], 9.0F);
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
