// The gradient of attention itself: known to its own error, and as near to the map of a forward
// pass's O and LSE as their bounds say.
#include "cpu_reference/backward/exact_gradient.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "cpu_reference/backward/gradient_test.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

constexpr OutputIndex gradients[] = {backward::dq, backward::dk, backward::dv, backward::d_sinks,
                                     backward::d_bias};

/// Inputs, with O and LSE of an exact forward pass rounded once, and its answer with the bound of a
/// kernel that rounds to the problem's format.
struct BothPasses {
  Problem problem;
  Inputs inputs;
  Answer forward;
  BackwardRoundings how;

  BothPasses(const std::string& text, const std::string& family, std::uint64_t seed)
      : problem(backward_problem(text)),
        inputs(make_inputs(problem, {.family = family, .seed = seed, .magnitude = 1})) {
    PrecisionPlan precision;
    precision.normaliser_chain = problem.key_len;
    forward = exact_answer(backward::forward_problem(problem),
                           backward::forward_inputs(problem, inputs), precision);
    how.weight_format = how.dscore_format = how.output = problem.element_type;
    how.delta_chain = problem.output_dim();
    how.dq_chain = problem.key_len;
    how.kv_chain = problem.query_len * (problem.query_heads / problem.kv_heads);
  }

  [[nodiscard]] Answer exact() const { return exact_gradient(problem, inputs, how, forward); }
  /// Gradients of what is given, as a kernel without roundings would have them.
  [[nodiscard]] Answer of_given() const {
    return all_gradients(problem, inputs, gradient_constants(how, problem),
                         [&](std::int64_t b, std::int64_t h, std::int64_t n) {
                           return given_row<double>(inputs, b, h, n);
                         });
  }
};

/// The largest |got - exact value| over a bound.
double worst_ratio(const Tensor<double>& got, const Tensor<double>& want,
                   const Tensor<double>& bound) {
  double worst = 0;
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double error = std::abs(got.values()[i] - want.values()[i]);
    if (error > 0) worst = std::max(worst, error / bound.values()[i]);
  }
  return worst;
}

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all{
      "b1 h2/1 q9 k12 d8 causal_bottom_right bf16",
      "b1 h1/1 q16 k24 d16 none fp16",
      "b2 h2/2 q7 k20 d8 none bf16 softcap2",
      "b1 h2/1 q8 k8 d8 none fp32 lengths5 padding9",
      "b1 h2/1 q9 k12 d8 causal_bottom_right bf16 dlse_given",
      "b1 h2/1 q9 k12 d8 none fp16 slopes_given",
      "b2 h2/1 q13 k12 d8 causal_bottom_right bf16 sinks_given dlse_given",
      "b2 h2/1 q9 k12 d8 none bf16 bias_heads softcap2",
      "b2 h2/1 q9 k12 d8 causal_bottom_right fp16 bias_shared sinks_given",
      "b1 h2/1 q9 k12 d8 none bf16 dropout0.5 philox7 dlse_given"};
  return all;
}

TEST(ExactGradient, IsThatOf256BitsWithinItsOwnErrorWhichIsFarBelowTheBound) {
  for (const std::string& text : texts()) {
    const BothPasses both(text, "normal", 3);
    const Problem& p = both.problem;
    const Answer answer = both.exact();
    const auto check = [&](OutputIndex output, const Shape& at, const Wide& want) {
      const double got = answer[output].value.at(at[0], at[1], at[2], at[3]);
      const double own = answer[output].own_error.at(at[0], at[1], at[2], at[3]);
      EXPECT_LE(abs(Wide(want - got)), own) << text << ' ' << output.number;
      EXPECT_LE(1e5 * own, answer[output].bound.at(at[0], at[1], at[2], at[3])) << text;
    };
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto row_of = [&](std::int64_t h, std::int64_t n) {
        return exact_row(p, both.inputs, b, h, n);
      };
      const auto dq = oracle_dq(p, both.inputs, b, 0, 3, row_of(0, 3));
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        check(backward::dq, {b, 0, 3, c}, dq[static_cast<std::size_t>(c)]);
      }
      const auto of_key = oracle_of_key<Wide>(p, both.inputs, b, 0, 2, row_of);
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        check(backward::dk, {b, 0, 2, c}, of_key.dk[static_cast<std::size_t>(c)]);
        check(backward::dv, {b, 0, 2, c}, of_key.dv[static_cast<std::size_t>(c)]);
      }
      if (p.bias == Bias::none) continue;
      const auto dbias = oracle_dbias<Wide>(
          p, both.inputs, b, 0, 3, [&](std::int64_t entry, std::int64_t h, std::int64_t n) {
            return exact_row(p, both.inputs, entry, h, n);
          });
      const Shape& shape = answer[backward::d_bias].value.shape();
      for (std::int64_t key = 0; key < p.key_len; ++key) {
        check(backward::d_bias, {shape[0] == 1 ? 0 : b, 0, 3, key},
              dbias[static_cast<std::size_t>(key)]);
      }
    }
  }
}

TEST(ExactGradient, TheMapOfWhatAForwardPassRoundsLiesWithinTheBoundsOfBothPasses) {
  double worst = 0;
  for (const std::string& text : texts()) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const BothPasses both(text, "gradient_mean_kv", seed);
      const Answer exact = both.exact(), given = both.of_given();
      for (const OutputIndex output : gradients) {
        const double ratio =
            worst_ratio(given[output].value, exact[output].value, exact[output].bound);
        EXPECT_LE(ratio, 1) << text << ' ' << seed << ' ' << output.number;
        worst = std::max(worst, ratio);
      }
    }
  }
  EXPECT_GT(worst, 0.05);  // of a kernel that itself rounds nothing
}

/// O in 16 bits moves dQ along the mean key by more than a backward kernel's own roundings may.
TEST(ExactGradient, WithoutWhatTheForwardPassRoundsTheBoundWouldNotHold) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    BothPasses both("b1 h1/1 q16 k64 d64 none bf16", "gradient_mean_kv", seed);
    both.how.weight_format = both.how.dscore_format = both.how.output = ElementType::fp32;
    const Answer given = both.of_given(), exact = both.exact();
    worst = std::max(worst, worst_ratio(exact[backward::dq].value, given[backward::dq].value,
                                        given[backward::dq].bound));
    EXPECT_LE(worst_ratio(given[backward::dq].value, exact[backward::dq].value,
                          exact[backward::dq].bound),
              1);
  }
  EXPECT_GT(worst, 1);
}

TEST(ExactGradient, AForwardPassThatIsWrongIsNoticedThoughItsMapIsFollowed) {
  for (const OutputIndex output : gradients) {
    BothPasses both("b1 h1/1 q16 k24 d16 none bf16 sinks_given bias_full", "normal", 4);
    for (float& lse : both.inputs[backward::lse].values()) lse += 0.1F;
    const Answer exact = both.exact(), given = both.of_given();
    EXPECT_GT(worst_ratio(given[output].value, exact[output].value, exact[output].bound), 1)
        << output.number;
  }
}

TEST(ExactGradient, WhereTheForwardPassHasNoBoundNeitherHasTheGradientThatItEnters) {
  BothPasses both("b1 h1/1 q4 k4 d4 none fp16", "normal", 5);
  both.forward[forward::lse].bound.at(0, 0, 1, 0) = std::numeric_limits<double>::infinity();
  const Answer exact = both.exact();
  EXPECT_TRUE(std::isinf(exact[backward::dq].bound.at(0, 0, 1, 0)));
  EXPECT_TRUE(std::isinf(exact[backward::dv].bound.at(0, 0, 2, 0)));
  EXPECT_TRUE(std::isfinite(exact[backward::dq].bound.at(0, 0, 0, 0)));
}

}  // namespace
}  // namespace attest
