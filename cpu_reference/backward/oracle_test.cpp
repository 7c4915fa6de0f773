// The oracle of gradients against what needs no formula for them: differences of the forward pass,
// and cases that are done by hand.
#include "cpu_reference/backward/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "cpu_reference/backward/gradient_test.hpp"

namespace attest {
namespace {

Inputs gradient_inputs(const Problem& problem, const std::string& family = "normal",
                       std::uint64_t seed = 1) {
  return make_inputs(problem, {.family = family, .seed = seed, .magnitude = 1});
}

/// An element of an input, and by how much it is moved.
struct Move {
  InputIndex input;
  std::int64_t b, h, n, c;
  Wide by;
};

/// <dO, O>, and <dLSE, LSE> where it is given, by the definition of the forward pass, with one
/// element moved.
Wide loss(const Problem& problem, const Inputs& inputs, const Move& move) {
  const auto at = [&](InputIndex input, std::int64_t b, std::int64_t h, std::int64_t n,
                      std::int64_t c) {
    Wide x = inputs[input].at(b, h, n, c);
    const bool is_moved =
        input == move.input && b == move.b && h == move.h && n == move.n && c == move.c;
    return is_moved ? Wide(x + move.by) : x;
  };
  Wide total = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        if (n >= problem.query_len_of(b)) continue;
        Wide weights = 0, sum = 0;
        if (problem.sinks != Sinks::none) weights = exp(at(backward::sinks, 0, h, 0, 0));
        for (const std::int64_t key : forward::keys_of_row(problem, inputs, b, h, n)) {
          Wide s = 0, g = 0;
          for (std::int64_t c = 0; c < problem.head_dim; ++c) {
            s += at(backward::q, b, h, n, c) * at(backward::k, b, problem.kv_head_of(h), key, c);
          }
          s *= problem.scale;
          if (problem.softcap > 0) s = problem.softcap * tanh(Wide(s / problem.softcap));
          s += forward::alibi_of(problem, inputs, b, h, n, key);
          if (problem.bias != Bias::none) {
            s += at(backward::bias, entries_share_bias(problem) ? 0 : b,
                    heads_share_bias(problem) ? 0 : h, n, key);
          }
          for (std::int64_t c = 0; c < problem.output_dim(); ++c) {
            g += at(backward::v, b, problem.kv_head_of(h), key, c) *
                 inputs[backward::d_o].at(b, h, n, c);
          }
          weights += exp(s);
          sum += exp(s) * kept_factor<Wide>(problem, b, h, n, key) * g;
        }
        if (weights == 0) continue;
        total += sum / weights;
        for (const float x : inputs[backward::d_lse].row(b, h, n)) total += x * log(weights);
      }
    }
  }
  return total;
}

Wide central_difference(const Problem& problem, const Inputs& inputs, Move move, const Wide& step) {
  move.by = step;
  const Wide above = loss(problem, inputs, move);
  move.by = -step;
  return (above - loss(problem, inputs, move)) / (2 * step);
}

/// A central difference errs by c h^2 and less: halving the step leaves a quarter of it, so that
/// two steps differ by three quarters of what the first one errs by.
void expect_derivative(const Problem& problem, const Inputs& inputs, const Move& move,
                       const Wide& got) {
  const Wide step = pow(Wide(2), -50);
  const Wide coarse = central_difference(problem, inputs, move, step);
  const Wide fine = central_difference(problem, inputs, move, step / 2);
  const Wide noise = pow(Wide(2), -190);  // what 256 bits leave of differences over 2^-51
  EXPECT_LE(abs(Wide(got - fine)), abs(Wide(coarse - fine)) + noise)
      << move.input.number << ' ' << move.n << ' ' << move.c;
}

class GradientOracle : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Problem, GradientOracle,
    testing::Values("b1 h1/1 q3 k4 d3 none", "b2 h2/1 q3 k3 d2 causal_top_left dv3 scale0.7",
                    "b1 h2/2 q2 k5 d2 causal_bottom_right softcap0.8",
                    "b1 h1/1 q4 k4 d2 window_bottom_right left1 right0 scale-0.5",
                    "b2 h2/1 q3 k3 d2 none lengths5 padding9",
                    "b1 h2/1 q4 k3 d2 causal_bottom_right dlse_given",
                    "b2 h1/1 q3 k3 d2 none scale0.7 softcap0.8 lengths5 dlse_given",
                    "b2 h1/1 q4 k6 d2 causal_bottom_right prefix3",
                    "b1 h2/1 q5 k5 d2 causal_top_left documents4 dlse_given",
                    "b2 h1/1 q4 k5 d2 none lists4 listrows2 listkeys2 padding9",
                    "b1 h2/1 q3 k5 d2 none slopes_given softcap0.8",
                    "b2 h2/1 q4 k3 d2 causal_top_left lengths5 slopes_given dlse_given",
                    "b2 h2/1 q3 k4 d2 none dropout0.5 philox3 dlse_given",
                    "b1 h2/2 q4 k5 d2 causal_bottom_right dropout0.1 offset4 softcap0.8"),
    [](const auto& suite) { return "case" + std::to_string(suite.index); });

TEST_P(GradientOracle, IsTheDerivativeOfTheForwardPassInEveryElement) {
  const Problem problem = backward_problem(GetParam());
  const Inputs inputs = gradient_inputs(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const auto row_of = [&](std::int64_t h, std::int64_t n) {
      return exact_row(problem, inputs, b, h, n);
    };
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto dq = oracle_dq(problem, inputs, b, h, n, row_of(h, n));
        for (std::int64_t c = 0; c < problem.head_dim; ++c) {
          expect_derivative(problem, inputs, {backward::q, b, h, n, c, 0},
                            dq[static_cast<std::size_t>(c)]);
        }
      }
    }
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      for (std::int64_t key = 0; key < problem.key_len; ++key) {
        const auto sums = oracle_of_key<Wide>(problem, inputs, b, h, key, row_of);
        for (std::int64_t c = 0; c < problem.head_dim; ++c) {
          expect_derivative(problem, inputs, {backward::k, b, h, key, c, 0},
                            sums.dk[static_cast<std::size_t>(c)]);
        }
        for (std::int64_t c = 0; c < problem.output_dim(); ++c) {
          expect_derivative(problem, inputs, {backward::v, b, h, key, c, 0},
                            sums.dv[static_cast<std::size_t>(c)]);
        }
      }
    }
  }
}

TEST(GradientOracle, OfSinksIsTheDerivativeToo) {
  for (const char* const text :
       {"b2 h2/1 q3 k4 d2 none sinks_given dlse_given",
        "b2 h2/1 q5 k3 d2 causal_bottom_right sinks_given dlse_given scale0.7",
        "b3 h1/1 q4 k4 d2 none lengths5 padding9 sinks_given slopes_given softcap0.8 dropout0.5"}) {
    const Problem problem = backward_problem(text);
    Inputs inputs = gradient_inputs(problem);
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      inputs[backward::sinks].at(0, h, 0, 0) = 0.5F - static_cast<float>(h);
    }
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const Wide dsink = oracle_dsink<Wide>(
          problem, inputs, h,
          [&](std::int64_t b, std::int64_t n) { return exact_row(problem, inputs, b, h, n); });
      EXPECT_NE(dsink, 0);
      expect_derivative(problem, inputs, {backward::sinks, 0, h, 0, 0, 0}, dsink);
      const auto dq = oracle_dq(problem, inputs, 0, h, 0, exact_row(problem, inputs, 0, h, 0));
      expect_derivative(problem, inputs, {backward::q, 0, h, 0, 1, 0}, dq[1]);
    }
  }
}

TEST(GradientOracle, OfABiasIsTheDerivativeTooSummedOverWhatSharesIt) {
  for (const char* const text :
       {"b2 h2/1 q3 k4 d2 none bias_full dlse_given", "b2 h2/1 q2 k3 d2 none bias_heads softcap0.8",
        "b2 h2/2 q4 k3 d2 causal_bottom_right bias_entries sinks_given dlse_given scale0.7",
        "b3 h2/1 q3 k4 d2 none lengths5 padding9 bias_shared slopes_given softcap0.8"}) {
    const Problem problem = backward_problem(text);
    Inputs inputs = gradient_inputs(problem);
    Tensor<float>& bias = inputs[backward::bias];
    for (std::int64_t i = 0; i < bias.size(); ++i) {  // no pair is hidden, but one
      float& x = bias.values()[static_cast<std::size_t>(i)];
      x = i == 4 ? -std::numeric_limits<float>::infinity()
                 : 0.25F * static_cast<float>(i % 7) - 0.5F;
    }
    const Shape& shape = bias.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t n = 0; n < shape[2]; ++n) {
          const auto dbias = oracle_dbias<Wide>(problem, inputs, b, h, n, [&](auto... at) {
            return exact_row(problem, inputs, at...);
          });
          for (std::int64_t key = 0; key < shape[3]; ++key) {
            const Wide& got = dbias[static_cast<std::size_t>(key)];
            if (std::isinf(bias.at(b, h, n, key))) {
              EXPECT_EQ(got, 0);
            } else {
              expect_derivative(problem, inputs, {backward::bias, b, h, n, key, 0}, got);
            }
          }
        }
      }
    }
    const auto dq = oracle_dq(problem, inputs, 0, 0, 1, exact_row(problem, inputs, 0, 0, 1));
    expect_derivative(problem, inputs, {backward::q, 0, 0, 1, 1, 0}, dq[1]);
  }
}

TEST(GradientOracle, OfASinkThatIsNoneIs0ThoughARowSeesNoKey) {
  const Problem problem =
      backward_problem("b1 h1/1 q4 k2 d2 causal_bottom_right sinks_given dlse_given");
  Inputs inputs = gradient_inputs(problem);
  inputs[backward::sinks].at(0, 0, 0, 0) = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(oracle_dsink<Wide>(problem, inputs, 0,
                               [&](std::int64_t b, std::int64_t n) {
                                 return exact_row(problem, inputs, b, 0, n);
                               }),
            0);
}

TEST(GradientOracle, OfOneKeyGivesDOToVAndNothingToQAndK) {
  const Problem problem = backward_problem("b1 h1/1 q1 k1 d3 none");
  const Inputs inputs = gradient_inputs(problem);
  const auto row_of = [&](std::int64_t h, std::int64_t n) {
    return exact_row(problem, inputs, 0, h, n);
  };
  const auto sums = oracle_of_key<Wide>(problem, inputs, 0, 0, 0, row_of);
  const Wide rounding = pow(Wide(2), -240);
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto column = static_cast<std::size_t>(c);
    EXPECT_LE(abs(Wide(sums.dv[column] - inputs[backward::d_o].at(0, 0, 0, c))), rounding);
    EXPECT_LE(abs(sums.dk[column]), rounding);
    EXPECT_LE(abs(oracle_dq(problem, inputs, 0, 0, 0, row_of(0, 0))[column]), rounding);
  }
}

TEST(GradientOracle, OfOneKeyAnLseGradientGoesToQAndKWholeAndNotToV) {
  const Problem problem = backward_problem("b1 h1/1 q1 k1 d3 none dlse_given");
  const Inputs inputs = gradient_inputs(problem);
  const auto row = exact_row(problem, inputs, 0, 0, 0);
  const auto sums = oracle_of_key<Wide>(problem, inputs, 0, 0, 0, [&](auto, auto) { return row; });
  const auto dq = oracle_dq(problem, inputs, 0, 0, 0, row);
  const Wide factor = Wide(problem.scale) * inputs[backward::d_lse].at(0, 0, 0, 0);
  const Wide rounding = pow(Wide(2), -240);
  EXPECT_NE(factor, 0);
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto column = static_cast<std::size_t>(c);
    const Wide q = inputs[backward::q].at(0, 0, 0, c), k = inputs[backward::k].at(0, 0, 0, c);
    EXPECT_LE(abs(Wide(dq[column] - factor * k)), rounding);
    EXPECT_LE(abs(Wide(sums.dk[column] - factor * q)), rounding);
    EXPECT_LE(abs(Wide(sums.dv[column] - inputs[backward::d_o].at(0, 0, 0, c))), rounding);
  }
}

TEST(GradientOracle, OfTwoKeysIsTheProductOfTheirWeightsTimesDifferences) {
  const Problem problem = backward_problem("b1 h1/1 q1 k2 d1 none scale1");
  const Inputs inputs = gradient_inputs(problem);
  const Wide q = inputs[backward::q].at(0, 0, 0, 0),
             gradient = inputs[backward::d_o].at(0, 0, 0, 0);
  const Wide k0 = inputs[backward::k].at(0, 0, 0, 0), k1 = inputs[backward::k].at(0, 0, 1, 0);
  const Wide v0 = inputs[backward::v].at(0, 0, 0, 0), v1 = inputs[backward::v].at(0, 0, 1, 0);
  const Wide p = 1 / (1 + exp(Wide(q * (k1 - k0))));  // of key 0
  const Wide ds = p * (1 - p) * gradient * (v0 - v1);
  const auto row = exact_row(problem, inputs, 0, 0, 0);
  const auto row_of = [&](std::int64_t, std::int64_t) { return row; };
  const auto of_first = oracle_of_key<Wide>(problem, inputs, 0, 0, 0, row_of);
  const Wide rounding = pow(Wide(2), -240);
  EXPECT_LE(abs(Wide(of_first.dv[0] - p * gradient)), rounding);
  EXPECT_LE(abs(Wide(of_first.dk[0] - ds * q)), rounding);
  EXPECT_LE(abs(Wide(oracle_dq(problem, inputs, 0, 0, 0, row)[0] - ds * (k0 - k1))), rounding);
}

TEST(GradientOracle, TakesOAndLseAsTheyAreGiven) {
  const Problem problem = backward_problem("b1 h1/1 q2 k3 d2 none bf16");
  Inputs inputs = gradient_inputs(problem);
  const auto dv_of_first_key = [&] {
    return oracle_of_key<Wide>(problem, inputs, 0, 0, 0, [&](std::int64_t h, std::int64_t n) {
      return given_row<Wide>(inputs, 0, h, n);
    });
  };
  const auto before = dv_of_first_key();
  inputs[backward::o].at(0, 0, 0, 0) += 1;
  const auto moved = dv_of_first_key();
  EXPECT_EQ(before.dv, moved.dv);  // O enters through delta alone
  EXPECT_NE(before.dk, moved.dk);
  for (float& lse : inputs[backward::lse].values()) lse += 1;
  const auto smaller = dv_of_first_key();
  EXPECT_LE(abs(Wide(smaller.dv[0] * exp(Wide(1)) - moved.dv[0])),
            abs(moved.dv[0]) * pow(Wide(2), -22));  // LSE + 1 is rounded to fp32
}

}  // namespace
}  // namespace attest
