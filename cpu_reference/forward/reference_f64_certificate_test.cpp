#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64_test.hpp"

namespace attest {
namespace {

void expect_certified(const Problem& problem, const Inputs& inputs, const std::string& what) {
  const Answer answer = exact_answer(problem, inputs, plan_for(problem));
  const Certificate certificate = certify_rows(
      problem, inputs, answer, 5, static_cast<int>(std::min<std::int64_t>(problem.rows(), 12)));
  EXPECT_TRUE(certificate.holds())
      << what << ' ' << to_string(problem) << ": " << certificate.worst_ratio;
}

TEST(ReferenceF64, StaysWithinItsOwnErrorOnEveryMaskAndOddShape) {
  for (const Problem& problem : odd_problems()) {
    expect_certified(problem, normal_inputs(problem), "normal");
  }
}

TEST(ReferenceF64, StaysWithinItsOwnErrorOnAdversarialInputs) {
  const Problem problem{.query_len = 9,
                        .key_len = 53,
                        .head_dim = 32,
                        .mask = Mask::causal_bottom_right,
                        .scale = default_scale(32)};
  for (const double size : {1e-30, 1e-4, 30.0, 1e5, 1e9, 1e14, 1e20, 1e30}) {
    expect_certified(problem, normal_inputs(problem, size), "logits");
    expect_certified(problem, normal_inputs(problem, 1, size), "values");
  }
  expect_certified(problem, fill_inputs(problem, [](auto, auto) { return 1.5; }), "all equal");
  expect_certified(problem,
                   fill_inputs(problem,
                               [](auto tensor, std::uint64_t i) {
                                 const double big =
                                     i % 2 == 0 ? 1e6 : -1e6;  // products of neighbours cancel
                                 return tensor == 0   ? 1e3
                                        : tensor == 1 ? big + random_normal(1, 1, i)
                                                      : random_normal(1, 2, i);
                               }),
                   "cancelling");
  expect_certified(problem,
                   fill_inputs(problem,
                               [](auto tensor, std::uint64_t i) {
                                 return tensor == 1 && i / 32 == 7
                                            ? 4.0
                                            : random_normal(2, tensor, i) * (tensor == 0 ? 3 : 1);
                               }),
                   "one dominant key");
}

TEST(ReferenceF64, OwnErrorIsAFewRoundoffsATermAndNoMore) {
  for (const Problem& problem : odd_problems()) {
    if (problem.key_len == 0) continue;
    const Inputs inputs = normal_inputs(problem);
    const Answer answer = exact_answer(problem, inputs, plan_for(problem));
    double v_max = 0, q_max = 0, k_max = 0;
    for (const float x : inputs[forward::v].values())
      v_max = std::max(v_max, std::abs(static_cast<double>(x)));
    for (const float x : inputs[forward::q].values())
      q_max = std::max(q_max, std::abs(static_cast<double>(x)));
    for (const float x : inputs[forward::k].values())
      k_max = std::max(k_max, std::abs(static_cast<double>(x)));
    const double d = static_cast<double>(problem.head_dim);
    const double n = static_cast<double>(problem.key_len);
    const double a_max = static_cast<double>(problem.scale) * d * q_max * k_max;
    // H_j is at most (d + 3) u A + u D + 2 u with D <= 2 A; the share adds at most 3 (its worst
    // term is at d = 1, and the largest of three ratios stands for all). E1 <= 2 H_j e^(2 H_j) 2
    // max|v|; the sums add 2 n + 8.
    const double roundoffs = 3 * 4 * ((d + 5) * a_max + 2 + 4) + 2 * n + 8;
    for (const double own : answer[forward::o].own_error.values())
      EXPECT_LE(own, roundoffs * 0x1p-53 * v_max * evaluation_slack);
  }
}

TEST(ReferenceF64, OwnErrorIsNearlyReachedWhereFewRoundingsDecide) {
  double worst = 0;
  for (const std::int64_t keys : {2, 3}) {
    for (const double size : {10.0, 100.0}) {
      const Problem problem{.query_len = 400, .key_len = keys, .head_dim = 1, .scale = 0.3F};
      const Inputs inputs = normal_inputs(problem, size);
      const Answer answer = exact_answer(problem, inputs, plan_for(problem));
      const Certificate certificate = certify_rows(problem, inputs, answer, 1, 400);
      EXPECT_TRUE(certificate.holds());
      worst = std::max(worst, certificate.worst_ratio);
    }
  }
  // One score has 3 roundings and the estimate counts 6 for the pair, times a share of up to 3.
  EXPECT_GT(worst, 1.0 / 18);
}

TEST(Certificate, FailsWhenAValueIsWrongOrNan) {
  const Problem problem{.query_len = 1, .key_len = 7, .head_dim = 16};
  const Inputs inputs = normal_inputs(problem);
  const Answer good = exact_answer(problem, inputs, plan_for(problem));
  EXPECT_TRUE(certify_rows(problem, inputs, good, 0, 1).holds());
  for (const double wrong :
       {good[forward::o].value.at(0, 0, 0, 3) + 2 * good[forward::o].own_error.at(0, 0, 0, 3),
        std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Answer bad = good;
    bad[forward::o].value.at(0, 0, 0, 3) = wrong;
    EXPECT_FALSE(certify_rows(problem, inputs, bad, 0, 1).holds()) << wrong;
    bad = good;
    bad[forward::lse].value.at(0, 0, 0, 0) = wrong;
    EXPECT_FALSE(certify_rows(problem, inputs, bad, 0, 1).holds()) << wrong;
  }
}

}  // namespace
}  // namespace attest
