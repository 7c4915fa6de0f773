// The bound of gradients: never below the error of a kernel that rounds as badly as it may, never
// far above it, and below what planted bugs do.
#include "cpu_reference/backward/gradient_bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "cpu_reference/backward/gradient_test.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

/// Roundings whose directions are drawn, or all push the result the same way.
class GradientAdversary {
 public:
  GradientAdversary(std::uint64_t seed, bool is_biased) : seed_(seed), is_biased_(is_biased) {}

  [[nodiscard]] double off_by(double exact, double relative, double bias) {
    const double direction = is_biased_ ? bias : 2 * random_uniform(seed_, 21, next_++) - 1;
    return exact + std::abs(exact) * relative * direction;
  }
  [[nodiscard]] double rounded(double exact, double bias) {
    return off_by(exact, fp32_arithmetic.unit_roundoff, bias);
  }

 private:
  std::uint64_t seed_, next_ = 0;
  bool is_biased_;
};

/// Bug that an emulation has on purpose.
struct GradientBug {
  double dk_scale = 1;  ///< dK is multiplied by it
  bool drops_delta = false;
  bool drops_last_row = false;  ///< of every key's sums
};

/// P and dS of a pair as a kernel forms them, each rounding pushed so that P, or dS, grows.
struct GradientEmulation {
  const Problem& problem;
  const BackwardRoundings& how;
  GradientAdversary& adversary;
  GradientBug bug;

  [[nodiscard]] double sum(std::span<const float> x, std::span<const float> y, double bias) const {
    double total = 0;
    for (std::size_t c = 0; c < x.size(); ++c) {
      total = adversary.rounded(total + static_cast<double>(x[c]) * y[c], bias);
    }
    return total;
  }
  [[nodiscard]] double stored(double x, ElementType type, double bias) const {
    if (type == ElementType::fp32) return x;
    return adversary.off_by(x, format_of(type).unit_roundoff, bias) +
           bias * format_of(type).min_subnormal / 2;
  }

  struct Weights {
    double p, ds;
  };
  /// `grow`: which way dS is pushed; P is pushed up where that makes |dS| larger.
  [[nodiscard]] Weights weights(const Inputs& inputs, std::int64_t b, std::int64_t h,
                                std::int64_t n, std::int64_t key, double p_bias,
                                double ds_bias) const {
    const std::int64_t kv_head = problem.kv_head_of(h);
    const auto gradient = inputs[backward::d_o].row(b, h, n);
    const double up = problem.scale < 0 ? -p_bias : p_bias;
    double s = adversary.rounded(problem.scale * sum(inputs[backward::q].row(b, h, n),
                                                     inputs[backward::k].row(b, kv_head, key), up),
                                 p_bias);
    double chi = 1;
    if (problem.softcap > 0) {
      const double t = adversary.off_by(std::tanh(s / problem.softcap), how.softcap_error, p_bias);
      s = problem.softcap * t;
      chi = 1 - t * t;
    }
    const double lse = stored(inputs[backward::lse].at(b, h, n, 0), how.lse_format, -p_bias);
    double exponent = adversary.rounded(s - lse, p_bias);
    if (how.lse == LseForm::log2) {
      exponent =
          adversary.rounded(adversary.rounded(s, p_bias) - adversary.rounded(lse, -p_bias), p_bias);
    }
    const double error = how.exp.relative_error + how.exp.argument_error * std::abs(exponent);
    const double p = adversary.off_by(std::exp(exponent), error, p_bias);
    const double g = sum(gradient, inputs[backward::v].row(b, kv_head, key), ds_bias);
    double delta = bug.drops_delta ? 0 : sum(gradient, inputs[backward::o].row(b, h, n), -ds_bias);
    for (const float x : inputs[backward::d_lse].row(b, h, n)) {
      delta = adversary.rounded(delta - x, -ds_bias);
    }
    const double r = adversary.rounded(g - stored(delta, how.delta_format, -ds_bias), ds_bias);
    const double stored_p = stored(p, how.weight_format, p_bias);
    const double of_ds = how.dscore_of_rounded_weights ? stored_p : p;
    const double ds = adversary.rounded(adversary.rounded(of_ds * r, ds_bias) * chi, ds_bias);
    if (!how.scales_dscore) return {stored_p, stored(ds, how.dscore_format, ds_bias)};
    const double scaled = adversary.rounded(ds * problem.scale, up);
    return {stored_p, stored(scaled, how.dscore_format, up) / problem.scale};
  }
};

/// One element of dQ, dK or dV as the emulated kernel has it.
double emulated(const GradientEmulation& emulation, const Inputs& inputs, OutputIndex output,
                const Shape& at) {
  const Problem& p = emulation.problem;
  const auto [b, h, n, c] = at;
  const std::int64_t group = p.query_heads / p.kv_heads;
  const double scale = output == backward::dv ? 1 : p.scale;
  double total = 0, parts = 0;  // of one query head, and of those before it
  const auto add = [&](std::int64_t head, std::int64_t query, std::int64_t key, double factor) {
    const double bias = factor < 0 ? -1 : 1;
    const auto plain =
        gradient_pair(p, inputs, b, head, query, key, given_row<double>(inputs, b, head, query));
    const bool is_dv = output == backward::dv;
    const double p_bias = is_dv ? bias : (plain.r < 0 ? -bias : bias);
    const auto w = emulation.weights(inputs, b, head, query, key, p_bias, bias);
    total = emulation.adversary.rounded(total + (is_dv ? w.p : w.ds) * factor, 1);
  };
  if (output == backward::dq) {
    const auto add_part = [&] {
      const double part = emulation.stored(total * scale, emulation.how.dq_part_format, 1) / scale;
      parts = emulation.stored(emulation.adversary.rounded(parts + part, 1),
                               emulation.how.dq_sum_format, 1);
      total = 0;
    };
    std::int64_t in_part = 0;
    for (const std::int64_t key : visible_keys_of(p, b, n)) {
      add(h, n, key, inputs[backward::k].at(b, p.kv_head_of(h), key, c));
      if (++in_part % emulation.how.dq_chain == 0) add_part();
    }
    if (in_part % emulation.how.dq_chain != 0) add_part();
  } else {
    const InputIndex factors = output == backward::dk ? backward::q : backward::d_o;
    for (std::int64_t i = 0; i < group; ++i) {
      for (std::int64_t query = 0; query < p.query_len; ++query) {
        const bool is_lost = emulation.bug.drops_last_row && query == p.query_len - 1;
        if (!p.sees(b, query, n) || is_lost) continue;
        add(h * group + i, query, n, inputs[factors].at(b, h * group + i, query, c));
      }
      if (emulation.how.kv_parts == 1) continue;
      parts += emulation.stored(total * scale, emulation.how.kv_part_format, 1) / scale;
      total = 0;
    }
  }
  const double scaled = emulation.adversary.rounded((parts + total) * scale, 1);
  const double wrong = output == backward::dk ? emulation.bug.dk_scale : 1;
  const ElementType type = emulation.how.output;
  return type == ElementType::fp32 ? scaled * wrong : round_to(type, scaled * wrong);
}

struct GradientRatios {
  double of[3] = {0, 0, 0};  ///< by output
};

/// Errors over bounds of a kernel that rounds as `how` says and is held to what `claimed` allows.
GradientRatios gradient_ratios(const Problem& problem, const InputSpec& spec,
                               const BackwardRoundings& how, const BackwardRoundings& claimed,
                               GradientBug bug = {}) {
  const std::uint64_t seed = spec.seed;
  const Inputs inputs = make_inputs(problem, spec);
  const Answer answer = reference_of(backward_operation).exact(problem, inputs, claimed);
  EXPECT_TRUE(reference_of(backward_operation).certify(problem, inputs, answer, seed, 2).holds());
  GradientAdversary adversary(seed, seed % 2 == 0);
  const GradientEmulation emulation{problem, how, adversary, bug};
  GradientRatios worst;
  for (std::size_t i = 0; i < 3; ++i) {
    const OutputAnswer& of = answer[OutputIndex{i}];
    const Shape& shape = of.value.shape();
    for (std::uint64_t draw = 0; draw < 12; ++draw) {
      Shape at{};
      for (std::size_t axis = 0; axis < 4; ++axis) {
        at[axis] = random_below(seed, 30 + i, 4 * draw + axis, shape[axis]);
      }
      const double got = emulated(emulation, inputs, OutputIndex{i}, at);
      const double want = of.value.at(at[0], at[1], at[2], at[3]);
      const double bound = of.bound.at(at[0], at[1], at[2], at[3]);
      worst.of[i] = std::max(worst.of[i], got == want ? 0 : std::abs(got - want) / bound);
    }
  }
  return worst;
}

GradientRatios gradient_ratios(const Problem& problem, const std::string& family,
                               const BackwardRoundings& how, std::uint64_t seed,
                               GradientBug bug = {}) {
  return gradient_ratios(problem, {.family = family, .seed = seed, .magnitude = 1}, how, how, bug);
}

BackwardRoundings roundings_for(const Problem& problem, ElementType stored, LseForm lse) {
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  BackwardRoundings how{.softcap_error = 0x1p-21,
                        .lse = lse,
                        .delta_chain = problem.output_dim(),
                        .weight_format = stored,
                        .dscore_format = stored,
                        .dq_chain = problem.key_len,
                        .kv_chain = problem.query_len * group,
                        .output = problem.element_type};
  if (lse == LseForm::log2) how.exp = ex2_approx();
  return how;
}

const std::vector<std::string>& problems() {
  static const std::vector<std::string> all{"b1 h2/1 q9 k12 d8 causal_bottom_right fp32",
                                            "b1 h1/1 q16 k16 d16 none bf16",
                                            "b2 h2/2 q7 k20 d8 none fp16 softcap2",
                                            "b1 h4/2 q12 k12 d8 window_top_left left4 right1 bf16",
                                            "b1 h2/1 q9 k12 d8 none fp32 dlse_given",
                                            "b1 h1/1 q16 k16 d16 none bf16 dlse_given"};
  return all;
}

TEST(GradientBound, NoKernelThatRoundsAdversariallyExceedsItAndSomeComeNear) {
  for (const std::string& text : problems()) {
    const Problem problem = backward_problem(text);
    for (const LseForm lse : {LseForm::natural, LseForm::log2}) {
      const BackwardRoundings how = roundings_for(problem, problem.element_type, lse);
      GradientRatios worst;
      for (const char* family : {"normal", "gradient_mean_kv", "gradient_along_o", "outliers",
                                 "gradient_inexact_saved"}) {
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
          const GradientRatios here = gradient_ratios(problem, family, how, seed);
          for (std::size_t i = 0; i < 3; ++i) {
            EXPECT_LE(here.of[i], 1) << text << ' ' << family << ' ' << seed << ' ' << i;
            worst.of[i] = std::max(worst.of[i], here.of[i]);
          }
        }
      }
      for (const double of : worst.of) EXPECT_GT(of, 0.1) << text;
    }
  }
}

/// Kernels of others round more: dS from P as it is stored, scaled before it is, dK and dV of every
/// query head stored before they are added; LSE and delta read in 16 bits, dQ summed in them. Each
/// bound holds, and the same kernel exceeds that of one that does not say so.
TEST(GradientBound, WhatIsStoredBetweenTheProductsIsCountedWhereItIsDeclared) {
  const Problem problem = backward_problem("b1 h4/1 q12 k12 d8 none fp16 scale0.0078125");
  BackwardRoundings plain = roundings_for(problem, ElementType::fp32, LseForm::natural);
  plain.kv_parts = 4;
  plain.kv_chain = problem.query_len;
  struct Saying {
    void (*both)(BackwardRoundings&);  ///< what both kernels say
    void (*one)(BackwardRoundings&);
    double gradient;  ///< size of dO
  };
  const std::vector<Saying> sayings{
      {[](BackwardRoundings& how) { how.weight_format = ElementType::fp16; },
       [](BackwardRoundings& how) { how.dscore_of_rounded_weights = true; }, 1},
      {[](BackwardRoundings& how) { how.dscore_format = ElementType::fp16; },
       [](BackwardRoundings& how) { how.scales_dscore = true; }, 0x1p-6},
      {[](BackwardRoundings&) {},
       [](BackwardRoundings& how) { how.kv_part_format = ElementType::fp16; }, 1},
      {[](BackwardRoundings&) {},
       [](BackwardRoundings& how) { how.lse_format = ElementType::fp16; }, 1},
      {[](BackwardRoundings&) {},
       [](BackwardRoundings& how) { how.delta_format = ElementType::fp16; }, 1},
      {[](BackwardRoundings& how) { how.dq_chain = 4, how.dq_parts = 3; },
       [](BackwardRoundings& how) { how.dq_sum_format = ElementType::fp16; }, 1},
      {[](BackwardRoundings& how) { how.dq_chain = 4, how.dq_parts = 3; },
       [](BackwardRoundings& how) { how.dq_part_format = ElementType::fp16; }, 1}};
  for (const Saying& saying : sayings) {
    BackwardRoundings silent = plain;
    saying.both(silent);
    BackwardRoundings honest = silent;
    saying.one(honest);
    double of_honest = 0, of_silent = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const InputSpec inputs{
          .family = "gradient_scaled", .seed = seed, .magnitude = saying.gradient};
      for (std::size_t i = 0; i < 3; ++i) {
        of_honest = std::max(of_honest, gradient_ratios(problem, inputs, honest, honest).of[i]);
        of_silent = std::max(of_silent, gradient_ratios(problem, inputs, honest, silent).of[i]);
      }
    }
    const auto which = &saying - sayings.data();
    EXPECT_LE(of_honest, 1) << which;
    EXPECT_GT(of_honest, 0.1) << which;
    EXPECT_GT(of_silent, 1) << which;
  }
}

TEST(GradientBound, IsBelowWhatAMissingDeltaALostRowAndAScaleOffDo) {
  const Problem problem = backward_problem("b1 h1/1 q16 k16 d16 none bf16");
  const BackwardRoundings how = roundings_for(problem, ElementType::bf16, LseForm::natural);
  int delta = 0, row = 0, scale = 0;
  constexpr int sets = 20;
  for (std::uint64_t seed = 1; seed <= sets; ++seed) {
    const auto is_seen = [&](GradientBug bug) {
      const GradientRatios worst = gradient_ratios(problem, "normal", how, seed, bug);
      return worst.of[0] > 1 || worst.of[1] > 1 || worst.of[2] > 1;
    };
    delta += is_seen({.drops_delta = true}) ? 1 : 0;
    row += is_seen({.drops_last_row = true}) ? 1 : 0;
    scale += is_seen({.dk_scale = 1.1}) ? 1 : 0;
  }
  EXPECT_EQ(delta, sets);
  EXPECT_EQ(row, sets);
  EXPECT_GT(scale, sets / 2);
}

TEST(GradientBound, OfWhatSeesNothingIs0) {
  const Problem problem = backward_problem("b1 h1/1 q6 k3 d4 causal_bottom_right fp32");
  const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 3, .magnitude = 1});
  const Answer answer =
      reference_of(backward_operation).exact(problem, inputs, BackwardRoundings{});
  for (std::int64_t n = 0; n < 3; ++n) {
    for (std::int64_t c = 0; c < 4; ++c) {
      EXPECT_EQ(answer[backward::dq].value.at(0, 0, n, c), 0);
      EXPECT_EQ(answer[backward::dq].bound.at(0, 0, n, c), 0);
    }
  }
}

TEST(GradientBound, WhereDSCanExceedFp16NothingIsClaimedOfWhatItEnters) {
  const Problem problem = backward_problem("b1 h1/1 q4 k4 d16 none fp16");
  const BackwardRoundings how = roundings_for(problem, ElementType::fp16, LseForm::natural);
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 5, .magnitude = 1});
  for (float& x : inputs[backward::d_o].row(0, 0, 0)) x = 65504;
  const Answer answer = reference_of(backward_operation).exact(problem, inputs, how);
  EXPECT_EQ(answer[backward::dq].bound.at(0, 0, 0, 0), std::numeric_limits<double>::infinity());
  EXPECT_LT(answer[backward::dq].bound.at(0, 0, 1, 0), 1);
}

TEST(GradientBound, AValueThatIsNoNumberTakesNothingFromTheBoundOfDV) {
  const Problem problem = backward_problem("b1 h1/1 q5 k7 d16 none bf16");
  const BackwardRoundings how = roundings_for(problem, ElementType::bf16, LseForm::natural);
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 5, .magnitude = 1});
  const auto answer = [&] { return reference_of(backward_operation).exact(problem, inputs, how); };
  const Answer clean = answer();
  inputs[backward::v].row(0, 0, 3)[2] = std::numeric_limits<float>::quiet_NaN();
  const Answer spoilt = answer();
  for (std::int64_t n = 0; n < problem.key_len; ++n) {
    for (std::int64_t c = 0; c < 16; ++c) {
      EXPECT_EQ(spoilt[backward::dv].value.at(0, 0, n, c),
                clean[backward::dv].value.at(0, 0, n, c));
      EXPECT_EQ(spoilt[backward::dv].bound.at(0, 0, n, c),
                clean[backward::dv].bound.at(0, 0, n, c));
    }
    EXPECT_EQ(std::isnan(spoilt[backward::dk].value.at(0, 0, n, 0)), n == 3);
  }
}

}  // namespace
}  // namespace attest
