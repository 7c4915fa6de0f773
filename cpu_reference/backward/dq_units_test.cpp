// dQ in 32-bit integers: half a unit a part is what it costs, and no row is silently wrong.
#include "core/attention/dq_units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/inputs/input_family.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "cpu_reference/backward/gradient_choices.hpp"
#include "cpu_reference/backward/gradient_test.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

constexpr Plan plan{.query_tile = 64, .key_tile = 64};

const KernelInfo& in_units() {
  static const std::vector<KernelInfo> choices = gradient_choices();
  return *std::ranges::find(choices, "choice/bwd_dq_sums_in_units", &KernelInfo::name);
}

Tensor<float> dq_of(const Problem& problem, const Inputs& inputs) {
  const auto device = make_device(Executor::cpu);
  const Case c{.kernel = in_units().name, .problem = problem, .plan = plan};
  Session session(in_units(), c, inputs, *device);
  session.launch();
  return session.read_outputs()[backward::dq];
}

OutputAnswer answer_to(const Problem& problem, const Inputs& inputs, bool says_so) {
  auto how = in_units().precision(problem, plan).as<BackwardRoundings>();
  how.sums_dq_in_units = says_so;
  return reference_of(backward_operation).exact(problem, inputs, how)[backward::dq];
}

/// The largest error over its bound.
double ratio(const Tensor<float>& got, const OutputAnswer& answer) {
  double worst = 0;
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double error = std::abs(got.values()[i] - answer.value.values()[i]);
    const double here = error == 0 ? 0 : error / answer.bound.values()[i];
    if (!(here <= worst)) worst = here;
  }
  return worst;
}

TEST(DqUnits, AreThe30thPartInPowersOfTwoOfThePowerAboveTheSize) {
  EXPECT_EQ(dq_unit(1), 0x1p-29);
  EXPECT_EQ(dq_unit(1.999), 0x1p-29);
  EXPECT_EQ(dq_unit(2), 0x1p-28);
  EXPECT_EQ(dq_unit(0), 0x1p-126);
  EXPECT_EQ(dq_unit(0x1p-130), 0x1p-126);
}

/// Key 0 weighs nothing, and is so large that units are too.
TEST(DqUnits, HalfAUnitAPartIsAllowedAndTaken) {
  const Problem problem = backward_problem("b1 h1/1 q3 k130 d8 none fp16");
  double silent = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Inputs inputs = make_inputs(problem, {.family = "normal", .seed = seed});
    for (float& x : inputs[backward::q].values()) x = std::abs(x) + 1;
    for (float& x : inputs[backward::k].row(0, 0, 0)) x = -0x1p10F;
    for (float& x : inputs[backward::v].row(0, 0, 0)) x = 0x1p10F;
    backward_operation.complete(problem, inputs);
    const Tensor<float> dq = dq_of(problem, inputs);
    EXPECT_LE(ratio(dq, answer_to(problem, inputs, true)), 1) << seed;
    silent = std::max(silent, ratio(dq, answer_to(problem, inputs, false)));
  }
  EXPECT_GT(silent, 1);
}

/// One key whose dS times k is all of the size times its weight e^`by`.
Inputs with_lse_off(const Problem& problem, double by) {
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 1});
  for (const InputIndex index : {backward::q, backward::k, backward::v, backward::d_o}) {
    for (float& x : inputs[index].values()) x = 1;
  }
  backward_operation.complete(problem, inputs);
  for (float& x : inputs[backward::o].values()) x = -1;
  for (float& x : inputs[backward::lse].values()) x -= static_cast<float>(by);
  return inputs;
}

TEST(DqUnits, WeightsThatSumTo1AreWithinTheRangeAndWeightsPastItAreNaNNotSomethingElse) {
  const Problem problem = backward_problem("b1 h1/1 q2 k1 d8 none fp16");
  const Inputs right = with_lse_off(problem, 0);
  EXPECT_LE(ratio(dq_of(problem, right), answer_to(problem, right, true)), 1);
  for (const double by : {1.5, 3.0, 12.0}) {
    const Inputs wrong = with_lse_off(problem, by);
    const Tensor<float> dq = dq_of(problem, wrong);
    const OutputAnswer answer = answer_to(problem, wrong, true);
    for (const float x : dq.values()) EXPECT_TRUE(std::isnan(x)) << by;
    for (const double bound : answer.bound.values()) {
      EXPECT_EQ(bound, std::numeric_limits<double>::infinity()) << by;
    }
  }
}

/// The bound gives up before the kernel does, as weights go from fitting to not fitting.
TEST(DqUnits, WhatHasABoundIsNoNaN) {
  const Problem problem = backward_problem("b1 h1/1 q2 k200 d8 none bf16");
  int bounded = 0, lost = 0;
  for (int i = 0; i < 40; ++i) {
    Inputs inputs = make_inputs(problem, {.family = "gradient_along_o", .seed = 1});
    for (float& x : inputs[backward::lse].values()) x -= 0.3F * static_cast<float>(i);
    const Tensor<float> dq = dq_of(problem, inputs);
    const OutputAnswer answer = answer_to(problem, inputs, true);
    for (std::size_t e = 0; e < dq.values().size(); ++e) {
      if (answer.bound.values()[e] == std::numeric_limits<double>::infinity()) {
        ++lost;
        continue;
      }
      ++bounded;
      const double error = std::abs(dq.values()[e] - answer.value.values()[e]);
      EXPECT_LE(error, answer.bound.values()[e]) << i;
    }
  }
  EXPECT_GT(bounded, 0);
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace attest
