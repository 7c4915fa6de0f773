// The gradients of attention as a whole: certified, and the bound takes in what the chain rule in
// operators rounds, and no more than that.
#include "cpu_reference/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/fused_roundings.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/gradient.hpp"

namespace attest {
namespace {

constexpr OutputIndex all_gradients[] = {gradient::dq, gradient::dk, gradient::dv};

Problem gradient_problem(const std::string& text) {
  return problem_from_string("gradient " + text);
}

Inputs gradient_inputs(const Problem& problem, const std::string& family) {
  return make_inputs(problem, {.family = family, .seed = 5, .magnitude = 1});
}

Answer gradients_of(const Problem& problem, const Inputs& inputs) {
  return reference_of(gradient_operation)
      .exact(problem, inputs, fused_gradient_roundings(problem, usual_products(problem)));
}

float as_stored(const Problem& problem, double x) {
  return static_cast<float>(round_to(problem.element_type, x));
}

float float_dot(std::span<const float> x, std::span<const float> y) {
  float sum = 0;
  for (std::size_t c = 0; c < x.size(); ++c) sum += x[c] * y[c];
  return sum;
}

void add_row(std::span<float> sum, float size, std::span<const float> x) {
  for (std::size_t c = 0; c < x.size(); ++c) sum[c] += size * x[c];
}

/// Softmax in fp32, P and dP as tensors in the problem's format, delta from these two: what
/// frameworks derive. Without `subtracts_delta` it takes the sum of weights for a constant.
Outputs by_the_chain_rule(const Problem& p, const Inputs& inputs, bool subtracts_delta = true) {
  Outputs made{Tensor<float>(query_shape(p)), Tensor<float>(key_shape(p)),
               Tensor<float>(value_shape(p))};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const std::int64_t kv = p.kv_head_of(h);
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const auto q = inputs[gradient::q].row(b, h, n), d_o = inputs[gradient::d_o].row(b, h, n);
        const std::vector<std::int64_t> keys = visible_keys_of(p, b, n);
        std::vector<float> weights, products;
        for (const std::int64_t key : keys) {
          weights.push_back(float_dot(q, inputs[gradient::k].row(b, kv, key)) * p.scale);
          products.push_back(as_stored(p, float_dot(d_o, inputs[gradient::v].row(b, kv, key))));
        }
        if (keys.empty()) continue;
        const float largest = *std::ranges::max_element(weights);
        float total = 0, delta = 0;
        for (float& x : weights) total += x = std::exp(x - largest);
        for (float& x : weights) x /= total;
        for (std::size_t j = 0; j < keys.size(); ++j) delta += weights[j] * products[j];
        if (!subtracts_delta) delta = 0;
        for (std::size_t j = 0; j < keys.size(); ++j) {
          const float dscore = weights[j] * products[j] - weights[j] * delta;
          add_row(made[gradient::dq].row(b, h, n), dscore * p.scale,
                  inputs[gradient::k].row(b, kv, keys[j]));
          add_row(made[gradient::dk].row(b, kv, keys[j]), dscore * p.scale, q);
          add_row(made[gradient::dv].row(b, kv, keys[j]), as_stored(p, weights[j]), d_o);
        }
      }
    }
  }
  for (const OutputIndex output : all_gradients) {
    for (float& x : made[output].values()) x = as_stored(p, x);
  }
  return made;
}

/// The largest error over its bound; infinity for a NaN.
double worst_of_gradients(const Outputs& got, const Answer& want) {
  double worst = 0;
  for (const OutputIndex output : all_gradients) {
    for (std::size_t i = 0; i < got[output].values().size(); ++i) {
      const double error = std::abs(got[output].values()[i] - want[output].value.values()[i]);
      if (error == 0) continue;
      const double ratio = error / want[output].bound.values()[i];
      worst = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : std::max(worst, ratio);
    }
  }
  return worst;
}

const std::vector<std::string>& gradient_texts() {
  static const std::vector<std::string> all{
      "b1 h2/1 q9 k12 d8 causal_bottom_right bf16", "b1 h1/1 q16 k65 d16 none fp16",
      "b2 h1/1 q12 k7 d8 causal_bottom_right fp32", "b1 h1/1 q3 k5 d1 none fp32 scale-2",
      "b3 h2/1 q8 k8 d8 none fp32 lengths5 padding9"};
  return all;
}

TEST(GradientReference, IsTheOraclesOfBothPassesInEveryRow) {
  for (const std::string& text : gradient_texts()) {
    const Problem problem = gradient_problem(text);
    const Inputs inputs = gradient_inputs(problem, "normal");
    const Certificate certificate =
        reference_of(gradient_operation)
            .certify(problem, inputs, gradients_of(problem, inputs), 3, 40);
    EXPECT_EQ(certificate.rows, 40);
    EXPECT_TRUE(certificate.holds()) << text << ": " << certificate.worst_ratio;
  }
}

TEST(GradientReference, TheChainRuleInOperatorsIsWithinTheBound) {
  for (const std::string& text : gradient_texts()) {
    for (const char* const family : {"normal", "dominant_key", "ties", "positive_v"}) {
      const Problem problem = gradient_problem(text);
      const Inputs inputs = gradient_inputs(problem, family);
      EXPECT_LE(
          worst_of_gradients(by_the_chain_rule(problem, inputs), gradients_of(problem, inputs)), 1)
          << text << ", " << family;
    }
  }
}

TEST(GradientReference, ASumOfWeightsTakenForAConstantIsOutside) {
  for (const std::string& text : gradient_texts()) {
    const Problem problem = gradient_problem(text);
    const Inputs inputs = gradient_inputs(problem, "normal");
    EXPECT_GT(worst_of_gradients(by_the_chain_rule(problem, inputs, false),
                                 gradients_of(problem, inputs)),
              1)
        << text;
  }
}

}  // namespace
}  // namespace attest
