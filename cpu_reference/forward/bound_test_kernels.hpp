#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/error_bound.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

// Kernels, right and wrong, and inputs for the tests of the whole bound.

// What tests of single terms of the bound share.

namespace attest {
enum class Defect { none, dropped_key, missing_rescale, scale_off_by_one_percent, mask_off_by_one };
enum class Method { three_pass, online, normalised, folded_exp2 };

/// A kernel written out in fp32, as plainly as possible.
struct Emulated {
  Method method = Method::three_pass;
  std::int64_t tile = 16;
  ElementType weight_format = ElementType::fp32;
  bool sums_rounded_weights = false;
  Defect defect = Defect::none;

  [[nodiscard]] PrecisionPlan precision(const Problem& problem) const {
    PrecisionPlan plan;
    plan.weight_format = weight_format;
    plan.sums_rounded_weights = sums_rounded_weights;
    plan.normaliser_chain = std::max<std::int64_t>(problem.key_len, 1);
    plan.blocks = method == Method::three_pass ? 1 : (problem.key_len + tile - 1) / tile;
    plan.rescale = method == Method::three_pass   ? Rescale::none
                   : method == Method::normalised ? Rescale::normalised_steps
                                                  : Rescale::deferred;
    if (method == Method::folded_exp2) {
      plan.scale_after_dot = false;
      plan.exp = exp2_folded();
      plan.exp.argument_error += 0x1p-24;  // (m - m') c is rounded twice
    }
    return plan;
  }

  [[nodiscard]] float round_weight(float weight) const {
    return static_cast<float>(round_to(weight_format, static_cast<double>(weight)));
  }
  [[nodiscard]] Outputs run(const Problem& problem, const Inputs& inputs) const;
};

/// Softmax state of one row.
struct State {
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  std::vector<float> o;
};

/// Adds keys with dot products x[0..] whose values start at key `first`.
inline void add_tile(const Emulated& kernel, State& state, const std::vector<float>& x, float scale,
                     const Inputs& inputs, std::int64_t kv_head, std::int64_t first) {
  const bool is_folded = kernel.method == Method::folded_exp2;
  const float c = scale * std::numbers::log2e_v<float>;
  float m = state.m;
  for (const float score : x) m = std::max(m, score);
  const float alpha = is_folded ? std::exp2((state.m - m) * c) : std::exp(state.m - m);
  const bool skips = kernel.defect == Defect::missing_rescale && first > 0;
  const float carry = kernel.method == Method::normalised ? state.l * alpha : alpha;
  for (float& o : state.o) o *= skips ? 1.0F : carry;
  state.l *= alpha;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const float weight = is_folded ? std::exp2(std::fma(x[j], c, -(m * c))) : std::exp(x[j] - m);
    const float rounded = kernel.round_weight(weight);
    state.l += kernel.sums_rounded_weights ? rounded : weight;
    const auto v = inputs[forward::v].row(0, kv_head, first + static_cast<std::int64_t>(j));
    for (std::size_t i = 0; i < v.size(); ++i) state.o[i] = std::fma(rounded, v[i], state.o[i]);
  }
  state.m = m;
  if (kernel.method == Method::normalised) {
    for (float& o : state.o) o /= state.l;
  }
}

/// Maximum, normaliser, then O from weights that are divided first.
inline void three_passes(const Emulated& kernel, State& state, const std::vector<float>& scores,
                         const Inputs& inputs, std::int64_t kv_head) {
  for (const float score : scores) state.m = std::max(state.m, score);
  for (const float score : scores) {
    const float weight = std::exp(score - state.m);
    state.l += kernel.sums_rounded_weights ? kernel.round_weight(weight) : weight;
  }
  for (std::size_t j = 0; j < scores.size(); ++j) {
    float weight = std::exp(scores[j] - state.m);
    weight = kernel.sums_rounded_weights ? kernel.round_weight(weight) / state.l
                                         : kernel.round_weight(weight / state.l);
    const auto v = inputs[forward::v].row(0, kv_head, static_cast<std::int64_t>(j));
    for (std::size_t i = 0; i < v.size(); ++i) state.o[i] = std::fma(weight, v[i], state.o[i]);
  }
}

inline Outputs Emulated::run(const Problem& problem, const Inputs& inputs) const {
  Outputs outputs{Tensor<float>(query_shape(problem)),
                  Tensor<float>({1, problem.query_heads, problem.query_len, 1})};
  const float scale =
      defect == Defect::scale_off_by_one_percent ? problem.scale * 1.01F : problem.scale;
  for (std::int64_t h = 0; h < problem.query_heads; ++h) {
    for (std::int64_t query = 0; query < problem.query_len; ++query) {
      const std::int64_t kv_head = problem.kv_head_of(h);
      std::int64_t keys = problem.visible_keys(query);
      if (defect == Defect::mask_off_by_one) keys = std::min(keys + 1, problem.key_len);
      if (defect == Defect::dropped_key) --keys;
      State state;
      state.o.assign(static_cast<std::size_t>(problem.head_dim), 0.0F);
      const auto q = inputs[forward::q].row(0, h, query);
      const std::int64_t step =
          method == Method::three_pass ? std::max<std::int64_t>(keys, 1) : tile;
      for (std::int64_t first = 0; first < keys; first += step) {
        std::vector<float> x;
        for (std::int64_t j = first; j < std::min(first + step, keys); ++j) {
          const auto k = inputs[forward::k].row(0, kv_head, j);
          float dot = 0;
          for (std::size_t i = 0; i < q.size(); ++i) dot = std::fma(q[i], k[i], dot);
          x.push_back(method == Method::folded_exp2 ? dot : scale * dot);
        }
        if (method == Method::three_pass) {
          three_passes(*this, state, x, inputs, kv_head);
        } else {
          add_tile(*this, state, x, scale, inputs, kv_head, first);
        }
      }
      const float m = method == Method::folded_exp2 ? state.m * scale : state.m;
      outputs[forward::lse].at(0, h, query, 0) = m + std::log(state.l);
      for (std::size_t i = 0; i < state.o.size(); ++i) {
        float o = state.o[i];
        if ((method == Method::online || method == Method::folded_exp2) && keys > 0) o /= state.l;
        outputs[forward::o].row(0, h, query)[i] =
            static_cast<float>(round_to(problem.element_type, static_cast<double>(o)));
      }
    }
  }
  return outputs;
}

/// Largest error over bound; infinity for NaN or an error where the bound is 0.
struct Ratios {
  double o = 0, lse = 0;
  std::int64_t vacuous = 0, elements = 0;
};

inline void add_ratio(double& worst, Ratios& ratios, double got, double want, double bound) {
  ++ratios.elements;
  if (got == want) return;
  if (std::isinf(bound)) {
    ++ratios.vacuous;
    return;
  }
  const double ratio = std::abs(got - want) / bound;
  worst = std::max(worst, ratio >= 0 ? ratio : std::numeric_limits<double>::infinity());
}

inline Ratios compare(const Problem& problem, const Inputs& inputs, const Emulated& kernel) {
  const Outputs got = kernel.run(problem, inputs);
  const Answer want = exact_answer(problem, inputs, kernel.precision(problem));
  Ratios ratios;
  for (std::size_t i = 0; i < got[forward::o].values().size(); ++i) {
    add_ratio(ratios.o, ratios, static_cast<double>(got[forward::o].values()[i]),
              want[forward::o].value.values()[i], want[forward::o].bound.values()[i]);
  }
  for (std::size_t i = 0; i < got[forward::lse].values().size(); ++i) {
    add_ratio(ratios.lse, ratios, static_cast<double>(got[forward::lse].values()[i]),
              want[forward::lse].value.values()[i], want[forward::lse].bound.values()[i]);
  }
  return ratios;
}

inline const std::vector<std::string> families{
    "normal",         "large logits", "huge logits",     "tiny",     "dominant key",
    "equal keys",     "ascending",    "negative",        "outliers", "one-hot value",
    "constant value", "cancelling",   "vanishing values"};

inline Inputs make_family(const Problem& problem, const std::string& family, std::uint64_t seed) {
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(key_shape(problem))};
  std::uint64_t tensor = 0;
  for (auto* values : {&inputs[forward::q], &inputs[forward::k], &inputs[forward::v]}) {
    for (std::int64_t i = 0; i < values->size(); ++i) {
      const auto index = static_cast<std::uint64_t>(i);
      const std::int64_t row = i / problem.head_dim;
      double x = random_normal(seed, tensor, index);
      if (family == "large logits" && tensor == 0) x *= 8;
      if (family == "huge logits" && tensor == 0)
        x *= std::pow(10, 2 + static_cast<double>(seed % 3));
      if (family == "tiny") x *= 1e-3;
      if (family == "dominant key" && tensor < 2)
        x = row == problem.key_len / 2 || tensor == 0 ? 1.5 : x / 4;
      if (family == "equal keys" && tensor == 1) x = 0.7;
      if (family == "ascending" && tensor < 2)
        x = tensor == 0 ? 1 : 0.05 * static_cast<double>(row);
      if (family == "negative" && tensor < 2) x = tensor == 0 ? 2 : -std::abs(x);
      if (family == "outliers" && random_uniform(seed, tensor + 3, index) < 0.01) x *= 10;
      if (family == "one-hot value" && tensor == 2)
        x = row % problem.head_dim == i % problem.head_dim ? 1 : 0;
      if (family == "constant value" && tensor == 2) x = 1.25;
      if (family == "cancelling" && tensor < 2) x = tensor == 0 ? 3 : (i % 2 == 0 ? 50 : -50) + x;
      if (family == "vanishing values" && tensor == 2) {
        x *= 100 * format_of(problem.element_type).min_subnormal;
      }
      const double largest = format_of(problem.element_type).max_finite;
      x = std::clamp(x, -largest, largest);
      values->values()[index] = static_cast<float>(round_to(problem.element_type, x));
    }
    ++tensor;
  }
  return inputs;
}

/// A shape that straddles tile edges, from the seed.
inline Problem draw_problem(std::uint64_t seed, ElementType type) {
  constexpr std::int64_t lengths[] = {1, 2, 3, 15, 16, 17, 31, 53, 97, 130};
  constexpr std::int64_t dims[] = {1, 2, 16, 24, 64};
  Problem problem{.query_heads = 2, .kv_heads = 1, .element_type = type};
  problem.query_len = 1 + random_below(seed, 10, 0, 9);
  problem.key_len = lengths[random_below(seed, 10, 1, 10)];
  problem.head_dim = dims[random_below(seed, 10, 2, 5)];
  problem.mask = all_masks()[static_cast<std::size_t>(random_below(seed, 10, 3, 3))];
  problem.scale = default_scale(problem.head_dim);
  return problem;
}

inline constexpr double u = 0x1p-24;
/// The size of a score that is large against every term which does not grow with it.
inline constexpr double large_score = 1000;
/// A declared error far above all roundings of a short row.
inline constexpr double coarse = 0x1p-10;

/// One query that is 1, keys whose dot products are given, and values; one column.
struct BoundTestRow {
  Problem problem;
  Inputs inputs;
  PrecisionPlan plan;

  BoundTestRow(const std::vector<float>& keys, const std::vector<float>& values, float scale = 1)
      : problem{.query_len = 1,
                .key_len = static_cast<std::int64_t>(keys.size()),
                .head_dim = 1,
                .scale = scale},
        inputs{Tensor<float>(query_shape(problem), 1.0F), Tensor<float>(key_shape(problem)),
               Tensor<float>(key_shape(problem))} {
    std::ranges::copy(keys, inputs[forward::k].values().begin());
    std::ranges::copy(values, inputs[forward::v].values().begin());
    plan.rescale = Rescale::none;
    plan.exp = {"exact", 0, 0};
  }

  [[nodiscard]] OracleRow<double> exact() const {
    return oracle_row<double>(problem, inputs, 0, 0, 0);
  }
  /// The bounds of O and LSE, with one constant set to 0.
  [[nodiscard]] OracleBound<double> bound(double BoundConstants::*zeroed = nullptr) const {
    BoundConstants c = bound_constants(plan, problem, problem.key_len, magnitudes_of(inputs));
    if (zeroed != nullptr) c.*zeroed = 0;
    return oracle_bound(problem, inputs, 0, 0, exact(), c, plan.scale_folded_into_q);
  }
  void expect_o_needs(double BoundConstants::*term, double got) const {
    const double error = std::abs(got - exact().o[0]);
    EXPECT_LE(error, bound().o[0]);
    EXPECT_GT(error, bound(term).o[0]);
  }
  void expect_lse_needs(double BoundConstants::*term, double got) const {
    const double error = std::abs(got - exact().lse);
    EXPECT_LE(error, bound().lse);
    EXPECT_GT(error, bound(term).lse);
  }
};

}  // namespace attest
