#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/attention/quantiser.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/bound_constants.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

Problem problem_of(Code code, Scales k_scales, Scales v_scales) {
  Problem p{.operation = &quantised_operation,
            .batch = 2,
            .query_heads = 4,
            .kv_heads = 2,
            .query_len = 3,
            .key_len = 150,
            .head_dim = 16,
            .scale = default_scale(16)};
  p.codes = {.q = Code::e4m3,
             .k = code,
             .v = code,
             .q_scales = Scales::row,
             .k_scales = k_scales,
             .v_scales = v_scales};
  return p;
}

Answer answer_of(const Problem& p, const Inputs& inputs) {
  const KernelInfo& kernel = *find_kernel("quantised_rows", Executor::cpu);
  return reference_of(quantised_operation).exact(p, inputs, kernel.precision(p, {}));
}

TEST(QuantisedReference, IsCertifiedByTheOracleForEveryCodeAndKindOfScale) {
  for (const Code code : {Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4}) {
    for (const Scales scales :
         {Scales::none, Scales::head, Scales::block, Scales::row, Scales::column}) {
      for (const char* const family : {"normal", "distinct_scales", "all_codes", "huge_logits"}) {
        Problem p = problem_of(code, scales, scales);
        if (scales == Scales::block || scales == Scales::column) {
          p.codes.scale_format = ScaleFormat::ue8m0;
        }
        const Inputs inputs = make_inputs(p, {.family = family, .seed = 3});
        const Certificate certificate =
            reference_of(quantised_operation).certify(p, inputs, answer_of(p, inputs), 5, 12);
        EXPECT_TRUE(certificate.holds()) << to_string(p) << ' ' << family;
        EXPECT_EQ(certificate.rows, 12);
      }
    }
  }
}

// The definition: what codes and scales stand for is their product, whatever shares a scale.
TEST(QuantisedReference, IsAttentionOfTheNumbers) {
  for (const Scales scales : {Scales::head, Scales::block, Scales::row, Scales::column}) {
    const Problem p = problem_of(Code::int8, scales, scales);
    const Inputs inputs = make_inputs(p, {.family = "distinct_scales", .seed = 8});
    RealInputs numbers;
    numbers[forward::q] = Tensor<double>(query_shape(p));
    numbers[forward::k] = Tensor<double>(key_shape(p));
    numbers[forward::v] = Tensor<double>(value_shape(p));
    const Tensor<float>& k_scale = inputs[quantised::k_scale];
    for (std::int64_t n = 0; n < p.key_len; ++n) {
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        const float scale = scales == Scales::head    ? k_scale.at(1, 0, 0, 0)
                            : scales == Scales::block ? k_scale.at(1, 0, n / 128, 0)
                            : scales == Scales::row   ? k_scale.at(1, 0, n, 0)
                                                      : k_scale.at(1, 0, 0, c);
        numbers[forward::k].at(1, 0, n, c) =
            static_cast<double>(inputs[quantised::k].at(1, 0, n, c)) * static_cast<double>(scale);
        EXPECT_EQ(numbers[forward::k].at(1, 0, n, c),
                  quantised::numbers_of(p, inputs)[forward::k].at(1, 0, n, c))
            << name_of(scales) << " at " << n << ", " << c;
      }
    }
  }
}

TEST(QuantisedReference, OneKeyGivesItsNumberInEveryColumn) {
  Problem p = problem_of(Code::e4m3, Scales::head, Scales::column);
  p.key_len = 1;
  const Inputs inputs = make_inputs(p, {.family = "all_codes", .seed = 2});
  const Answer answer = answer_of(p, inputs);
  const RealInputs numbers = quantised::numbers_of(p, inputs);
  for (std::int64_t c = 0; c < p.head_dim; ++c) {
    EXPECT_EQ(answer[quantised::o].value.at(0, 3, 2, c), numbers[forward::v].at(0, 1, 0, c));
  }
}

TEST(Quantiser, RoundsToTheNearestCodeOfTheScaleThatTheLargestNumberGives) {
  const Shape shape{1, 2, 130, 6};
  Tensor<float> values(shape);
  for (std::size_t i = 0; i < values.values().size(); ++i) {
    values.values()[i] = static_cast<float>(random_normal(1, 0, i));
  }
  const auto all = [](std::int64_t) { return std::int64_t{130}; };
  for (const ElementType code : code_types()) {
    for (const Scales kind : {Scales::head, Scales::block, Scales::row, Scales::column}) {
      const QuantisedTensor made = quantise(values, code, kind, all);
      const Tensor<double> back = dequantise(made.codes, made.scales, kind);
      bool has_largest = false;
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t n = 0; n < 130; ++n) {
          for (std::int64_t c = 0; c < 6; ++c) {
            const double scale = scale_of(made.scales, kind, 0, h, n, c);
            const double value = values.at(0, h, n, c),
                         error = std::abs(back.at(0, h, n, c) - value);
            // Half a step of the format where the code is.
            const double at = std::abs(static_cast<double>(made.codes.at(0, h, n, c)));
            const ElementFormat& format = format_of(code);
            const double half = std::max(at * format.unit_roundoff, format.min_subnormal / 2);
            EXPECT_LE(error, half * scale * (1 + 0x1p-20)) << format.name << name_of(kind);
            has_largest = has_largest || at == format.max_finite;
          }
        }
      }
      EXPECT_TRUE(has_largest) << name_of(kind);
    }
  }
}

TEST(Quantiser, LeavesOutRowsPastTheLengthAndNumbersThatAreNotFinite) {
  Tensor<float> values(Shape{1, 1, 3, 2}, 1.0F);
  values.at(0, 0, 1, 0) = std::numeric_limits<float>::infinity();
  values.at(0, 0, 2, 0) = 1e9F;
  const QuantisedTensor made =
      quantise(values, ElementType::e4m3, Scales::head, [](std::int64_t) { return 2; });
  EXPECT_EQ(made.scales.at(0, 0, 0, 0), 1.0F / 448);
  EXPECT_EQ(made.codes.at(0, 0, 0, 0), 448);
  EXPECT_EQ(made.codes.at(0, 0, 1, 0), 448) << "an infinity saturates";
  EXPECT_EQ(made.codes.at(0, 0, 2, 0), 0);
}

TEST(Quantiser, HasAScaleOf1WhereEverythingIs0) {
  const QuantisedTensor made = quantise(Tensor<float>(Shape{1, 1, 2, 2}), ElementType::int8,
                                        Scales::row, [](std::int64_t) { return 2; });
  for (const float scale : made.scales.values()) EXPECT_EQ(scale, 1.0F);
}

// A rounding that the plan does not name must not be free: each scaling widens the bound of a
// score.
TEST(QuantisedBound, EveryScalingIsARounding) {
  const Problem p = problem_of(Code::e4m3, Scales::head, Scales::head);
  const Magnitudes magnitudes{.q = 1, .k = 1, .v = 1};
  PrecisionPlan plan =
      find_kernel("quantised_rows", Executor::cpu)->precision(p, {}).as<PrecisionPlan>();
  double score = 0, numerator = 0;
  for (int scalings = 0; scalings < 4; ++scalings) {
    plan.score_scalings = plan.value_scalings = scalings;
    const BoundConstants c = bound_constants(plan, p, 10, magnitudes);
    const double roundings = scalings + 1;  // and the scale itself
    EXPECT_GE(c.score_rounding, roundings * 0x1p-24);
    EXPECT_LE(c.score_rounding, roundings * 0x1p-24 * (1 + 0x1p-20));
    EXPECT_GT(c.score_rounding, score);
    EXPECT_GT(c.numerator, numerator);
    score = c.score_rounding;
    numerator = c.numerator;
  }
}

TEST(QuantisedBound, NothingIsClaimedWhereProductsOfCodesCouldOverflow) {
  const Problem p = problem_of(Code::e4m3, Scales::head, Scales::head);
  const PrecisionPlan plan =
      find_kernel("quantised_rows", Executor::cpu)->precision(p, {}).as<PrecisionPlan>();
  Magnitudes magnitudes{.q = 1, .k = 1, .v = 1};
  const double usual = bound_constants(plan, p, 10, magnitudes).max_finite;
  magnitudes.scores.least = 0x1p-100;
  EXPECT_EQ(bound_constants(plan, p, 10, magnitudes).max_finite, usual * 0x1p-100);
}

}  // namespace
}  // namespace attest
