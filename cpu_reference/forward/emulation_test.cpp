#include "cpu_reference/forward/emulation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "cpu_reference/same_bits.hpp"

namespace attest {
namespace {

/// fp32 throughout: one block, the maximum known first, s = fl(scale x), expf.
PrecisionPlan plain_fp32() {
  PrecisionPlan precision;
  precision.rescale = Rescale::none;
  return precision;
}

/// One head, one query and two keys of one element each: k chooses the scores, v = 1 for both.
struct TwoKeys {
  Problem problem{.query_len = 1, .key_len = 2, .head_dim = 1, .scale = 1.0F};
  Inputs inputs{Tensor<float>(query_shape(problem), 1.0F), Tensor<float>(key_shape(problem)),
                Tensor<float>(key_shape(problem), 1.0F)};

  TwoKeys(float first, float second) {
    inputs[forward::k].values()[0] = first;
    inputs[forward::k].values()[1] = second;
  }
  [[nodiscard]] float output(const PrecisionPlan& precision, const Plan& plan = {}) const {
    return emulate(problem, plan, precision, inputs)[forward::o].values()[0];
  }
};

TEST(Emulation, one_fp32_block_equals_a_straight_three_pass_loop_bitwise) {
  const Problem p{.query_len = 9, .key_len = 37, .head_dim = 17, .mask = Mask::causal_bottom_right};
  const Inputs in = make_inputs(p, {.family = "normal", .seed = 3, .magnitude = 4});
  const Outputs got = emulate(p, {}, plain_fp32(), in);
  for (std::int64_t n = 0; n < p.query_len; ++n) {
    std::vector<float> s;
    for (std::int64_t j = 0; j < p.visible_keys(n); ++j) {
      float dot = 0;
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        dot = std::fma(in[forward::q].at(0, 0, n, d), in[forward::k].at(0, 0, j, d), dot);
      }
      s.push_back(dot * p.scale);
    }
    const float m = *std::ranges::max_element(s);
    float l = 0;
    std::vector<float> o(static_cast<std::size_t>(p.head_dim), 0.0F);
    for (std::size_t j = 0; j < s.size(); ++j) {
      const float weight = std::exp(s[j] - m);
      l += weight;
      for (std::size_t d = 0; d < o.size(); ++d) {
        o[d] = std::fma(weight, in[forward::v].row(0, 0, static_cast<std::int64_t>(j))[d], o[d]);
      }
    }
    for (float& x : o) x /= l;
    EXPECT_TRUE(same_bits(got[forward::o].row(0, 0, n), o)) << "row " << n;
    EXPECT_EQ(got[forward::lse].at(0, 0, n, 0), m + std::log(l)) << "row " << n;
  }
}

TEST(Emulation, a_kernel_is_reproduced_bitwise_from_its_precision_plan_alone) {
  for (const char* name : {"o5_deferred", "o4_normalised_merged_max", "o8_exp2_skip_rescale"}) {
    const KernelInfo* kernel = find_kernel(name, Executor::cpu);
    ASSERT_NE(kernel, nullptr) << name;
    Case c{.kernel = name,
           .problem = {.query_heads = 6,
                       .kv_heads = 2,
                       .query_len = 33,
                       .key_len = 50,
                       .head_dim = 17,
                       .mask = Mask::causal_top_left}};
    c.inputs = {.family = "normal", .seed = 5, .magnitude = 8};
    for (const ElementType type : all_element_types()) {
      c.problem.element_type = type;
      const Inputs inputs = make_inputs(c.problem, c.inputs);
      for (const Plan& plan : kernel->plans(c.problem)) {
        c.plan = plan;
        HostMemoryDevice device;
        Session session(*kernel, c, inputs, device);
        session.launch();
        const Outputs want = session.read_outputs();
        const Outputs got = emulate(c.problem, plan,
                                    kernel->precision(c.problem, plan).as<PrecisionPlan>(), inputs);
        EXPECT_TRUE(same_bits(got[forward::o].values(), want[forward::o].values())) << to_string(c);
        EXPECT_TRUE(same_bits(got[forward::lse].values(), want[forward::lse].values()))
            << to_string(c);
      }
    }
  }
}

TEST(Emulation, weights_are_rounded_before_p_v_and_in_the_sum_only_when_declared) {
  const TwoKeys keys(0.0F, -1.0F);
  const float weight = std::exp(-1.0F);
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    PrecisionPlan precision = plain_fp32();
    precision.weight_format = type;
    const auto rounded = static_cast<float>(round_to(type, static_cast<double>(weight)));
    ASSERT_NE(rounded, weight);
    EXPECT_EQ(keys.output(precision), (1 + rounded) / (1 + weight));
    EXPECT_NE(keys.output(precision), 1.0F);
    precision.sums_rounded_weights = true;
    EXPECT_EQ(keys.output(precision), 1.0F);
  }
}

TEST(Emulation, the_scale_enters_where_the_plan_says) {
  TwoKeys keys(1.7F, -2.9F);
  keys.inputs[forward::q].values()[0] = 5.3F;
  keys.inputs[forward::v].values()[1] = 0.0F;  // O is the first weight over the sum of both
  keys.problem.scale = 1.0F / 3;
  const float q = 5.3F, scale = keys.problem.scale;
  const float x0 = q * 1.7F, x1 = q * -2.9F;
  PrecisionPlan precision = plain_fp32();
  const auto expect_weights = [&](float first, float second) {
    EXPECT_EQ(keys.output(precision), first / (first + second)) << precision.exp.name;
  };

  expect_weights(1, std::exp(scale * x1 - scale * x0));
  precision.scale_after_dot = false;
  precision.scale_folded_into_q = true;
  expect_weights(1, std::exp(scale * q * -2.9F - scale * q * 1.7F));
  // FlashAttention's form: the weight of the largest score is not exactly 1, for its product with
  // the scale is rounded in one place and not in the other.
  precision.scale_folded_into_q = false;
  const auto fused = [&](float x, float factor) { return std::fma(x, factor, -(x0 * factor)); };
  expect_weights(std::exp(fused(x0, scale)), std::exp(fused(x1, scale)));
  precision.exp = exp2_folded();
  const float c = scale * std::numbers::log2e_v<float>;
  expect_weights(std::exp2(fused(x0, c)), std::exp2(fused(x1, c)));
}

TEST(Emulation, a_rising_maximum_multiplies_what_was_summed_before) {
  const TwoKeys keys(0.0F, 1.0F);
  PrecisionPlan precision;
  const float factor = std::exp(-1.0F);
  const Outputs deferred = emulate(keys.problem, {.key_tile = 1}, precision, keys.inputs);
  EXPECT_EQ(deferred[forward::lse].values()[0], 1.0F + std::log(factor + 1.0F));
  EXPECT_EQ(deferred[forward::o].values()[0], 1.0F);
  precision.rescale = Rescale::normalised_steps;
  const Outputs steps = emulate(keys.problem, {.key_tile = 1}, precision, keys.inputs);
  EXPECT_EQ(steps[forward::lse].values()[0], deferred[forward::lse].values()[0]);
}

TEST(Emulation, the_query_tile_moves_no_bit) {
  const Problem p{.query_len = 17, .key_len = 33, .mask = Mask::causal_top_left};
  const Inputs in = make_inputs(p, {.seed = 8});
  const Outputs want = emulate(p, {.key_tile = 16}, {}, in);
  for (const std::int64_t tile : {1, 3, 16, 64}) {
    const Outputs got = emulate(p, {.query_tile = tile, .key_tile = 16}, {}, in);
    EXPECT_TRUE(same_bits(got[forward::o].values(), want[forward::o].values())) << tile;
  }
}

TEST(Emulation, plans_it_cannot_replay_are_refused) {
  const Problem problem;
  const Inputs inputs = make_inputs(problem, {});
  EXPECT_THROW(static_cast<void>(emulate(problem, {.key_tile = -1}, {}, inputs)), InvalidInput);
  PrecisionPlan unknown;
  unknown.exp.name = "cosine";
  EXPECT_THROW(static_cast<void>(emulate(problem, {}, unknown, inputs)), InvalidInput);
  PrecisionPlan both;
  both.scale_folded_into_q = true;
  EXPECT_THROW(static_cast<void>(emulate(problem, {}, both, inputs)), InvalidInput);
}

}  // namespace
}  // namespace attest
