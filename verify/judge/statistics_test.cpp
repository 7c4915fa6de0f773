// The statistics layer against small errors that a worst-case bound must let pass, each planted in
// a plain kernel.
#include "verify/judge/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

enum class Defect { none, truncated_weights, coarse_normaliser, wrong_scale, truncated_output };

/// x cut towards zero to the format.
double truncated(ElementType type, double x) {
  const double nearest = round_to(type, x);
  if (std::abs(nearest) <= std::abs(x)) return nearest;
  // One step towards zero: halfway to the next lower value rounds there or back.
  const int exponent = std::ilogb(nearest) - format_of(type).significand_bits + 1;
  return round_to(type, nearest - std::copysign(std::ldexp(0.75, exponent), x));
}

/// One pass in double with the roundings of a FlashAttention-2 kernel at P, at l and at the output.
Outputs attend(const Problem& problem, const Inputs& inputs, Defect defect) {
  Outputs outputs{Tensor<float>(query_shape(problem)),
                  Tensor<float>({problem.batch, problem.query_heads, problem.query_len, 1})};
  const ElementType type = problem.element_type;
  const double scale =
      static_cast<double>(problem.scale) * (defect == Defect::wrong_scale ? 1.001 : 1);
  for (std::int64_t h = 0; h < problem.query_heads; ++h) {
    const std::int64_t kv = problem.kv_head_of(h);
    for (std::int64_t n = 0; n < problem.query_len; ++n) {
      const auto q = inputs[forward::q].row(0, h, n);
      std::vector<double> scores;
      double m = -INFINITY;
      for (std::int64_t j = 0; j < problem.visible_keys(n); ++j) {
        const auto k = inputs[forward::k].row(0, kv, j);
        double dot = 0;
        for (std::size_t i = 0; i < q.size(); ++i) dot += static_cast<double>(q[i]) * k[i];
        scores.push_back(scale * dot);
        m = std::max(m, scores.back());
      }
      double l = 0, coarse = 0;
      std::vector<double> o(q.size(), 0.0);
      for (std::size_t j = 0; j < scores.size(); ++j) {
        const double weight = std::exp(scores[j] - m);
        const double p =
            defect == Defect::truncated_weights ? truncated(type, weight) : round_to(type, weight);
        l += weight;
        if (j % 64 == 63 || j + 1 == scores.size()) coarse = round_to(type, l);  // kept by tile
        const auto v = inputs[forward::v].row(0, kv, static_cast<std::int64_t>(j));
        for (std::size_t i = 0; i < v.size(); ++i) o[i] += p * v[i];
      }
      const double divisor = defect == Defect::coarse_normaliser ? coarse : l;
      for (std::size_t i = 0; i < o.size(); ++i) {
        const double x = o[i] / divisor;
        outputs[forward::o].row(0, h, n)[i] = static_cast<float>(
            defect == Defect::truncated_output ? truncated(type, x) : round_to(type, x));
      }
      outputs[forward::lse].at(0, h, n, 0) = static_cast<float>(m + std::log(l));
    }
  }
  return outputs;
}

/// Roundings that such a kernel declares.
PrecisionPlan precision_of(const Problem& problem) {
  PrecisionPlan precision;
  precision.weight_format = problem.element_type;
  precision.normaliser_chain = problem.key_len;
  precision.division_error = 0x1p-24;
  precision.log_error = 0x1p-23;
  return precision;
}

struct Alarms {
  double o_over_bound = 0;
  std::set<std::string> alarms;
  std::int64_t rows = 0;
};

Alarms judge(const std::string& family, ElementType type, Defect defect, std::uint64_t seed) {
  Problem problem{.query_heads = 2,
                  .query_len = 64,
                  .key_len = 256,
                  .head_dim = 64,
                  .element_type = type,
                  .scale = default_scale(64)};
  const Inputs inputs = make_inputs(problem, {.family = family, .seed = seed});
  const PrecisionPlan precision = precision_of(problem);
  const Answer answer = exact_answer(problem, inputs, precision);
  Outputs outputs = attend(problem, inputs, defect);
  // LSE is that of the right scale: this is about errors that only O has.
  if (defect == Defect::wrong_scale)
    outputs[forward::lse] = attend(problem, inputs, Defect::none)[forward::lse];
  const auto models = model_errors(problem, inputs, precision, answer);
  const StatisticValues values = statistics_of(models, answer, outputs);
  Alarms judgement;
  judgement.rows = static_cast<std::int64_t>(models.size());
  judgement.o_over_bound =
      compare(outputs[forward::o], answer[forward::o].value, answer[forward::o].bound).worst.ratio;
  for (const StatisticInfo& info : all_statistics()) {
    const StatisticValue& value = values[static_cast<std::size_t>(info.statistic)];
    if (value.applies && !within(info.threshold, value.value)) {
      judgement.alarms.emplace(info.name);
    }
  }
  return judgement;
}

const std::vector<std::string> families{"normal", "outliers", "late_dims", "one_hot_v",
                                        "key_index_v"};
constexpr ElementType low_precision[] = {ElementType::fp16, ElementType::bf16};

TEST(Statistics, a_correct_kernel_raises_no_alarm) {
  for (const ElementType type : low_precision) {
    for (const std::string& family : families) {
      for (const std::uint64_t seed : {1, 2, 3}) {
        const Alarms found = judge(family, type, Defect::none, seed);
        EXPECT_GT(found.rows, 64) << family;
        EXPECT_TRUE(found.alarms.empty()) << family << ' ' << *found.alarms.begin();
      }
    }
  }
}

/// The bound lets the defect pass and the named statistic does not.
void expect_only_statistics_see(Defect defect, const std::string& statistic, ElementType type,
                                const std::string& family) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Alarms found = judge(family, type, defect, seed);
    EXPECT_LE(found.o_over_bound, 1) << family << ' ' << seed;
    EXPECT_TRUE(found.alarms.contains(statistic))
        << family << ' ' << seed << ' ' << format_of(type).name;
  }
}

TEST(Statistics, weights_truncated_instead_of_rounded_are_seen_where_the_bound_sees_nothing) {
  for (const ElementType type : low_precision) {
    for (const std::string family : {"normal", "outliers", "late_dims"}) {
      expect_only_statistics_see(Defect::truncated_weights, "o_gain", type, family);
    }
  }
}

TEST(Statistics, a_row_sum_kept_in_low_precision_is_seen_where_the_bound_sees_nothing) {
  for (const ElementType type : low_precision) {
    for (const std::string family : {"normal", "outliers", "late_dims"}) {
      expect_only_statistics_see(Defect::coarse_normaliser, "o_row_gain", type, family);
    }
  }
}

TEST(Statistics, a_scale_off_by_a_thousandth_is_seen_where_the_bound_sees_nothing) {
  for (const std::string family : {"normal", "outliers", "late_dims"}) {
    expect_only_statistics_see(Defect::wrong_scale, "o_temperature", ElementType::bf16, family);
  }
}

TEST(Statistics, an_output_truncated_instead_of_rounded_is_seen_where_the_bound_sees_nothing) {
  for (const std::string family : {"normal", "outliers", "late_dims"}) {
    expect_only_statistics_see(Defect::truncated_output, "o_gain", ElementType::bf16, family);
  }
}

TEST(Statistics, nothing_is_claimed_where_the_model_does_not_hold) {
  for (const std::string family : {"zero_q", "ties", "sparse_integers", "equal_huge_logits"}) {
    EXPECT_EQ(judge(family, ElementType::bf16, Defect::none, 1).rows, 0) << family;
  }
  // Equal queries have equal errors: one row of each head speaks for all.
  EXPECT_LE(judge("constant_q", ElementType::bf16, Defect::none, 1).rows, 2);
}

TEST(Statistics, a_nan_in_scope_never_passes) {
  Problem problem{.query_len = 64, .key_len = 64, .head_dim = 64, .scale = default_scale(64)};
  const Inputs inputs = make_inputs(problem, {.seed = 5});
  const Answer answer = exact_answer(problem, inputs, precision_of(problem));
  Outputs outputs = attend(problem, inputs, Defect::none);
  const auto models = model_errors(problem, inputs, precision_of(problem), answer);
  ASSERT_GT(models.size(), 48U);
  outputs[forward::o].at(0, 0, models[7].n, 3) = std::nanf("");
  outputs[forward::lse].at(0, 0, models[9].n, 0) = std::nanf("");
  const StatisticValues values = statistics_of(models, answer, outputs);
  for (const StatisticInfo& info : all_statistics()) {
    const StatisticValue& value = values[static_cast<std::size_t>(info.statistic)];
    EXPECT_FALSE(value.applies && within(info.threshold, value.value)) << info.name;
  }
}

}  // namespace
}  // namespace attest
