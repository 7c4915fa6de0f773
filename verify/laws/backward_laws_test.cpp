// The laws of backward passes, each against a saboteur.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/attention/backward_roundings.hpp"
#include "verify/laws/gradient_sabotage_test.hpp"

namespace attest {
namespace {

Case case_with_lse_gradient() {
  Case c = gradient_case();
  c.problem.lse_gradient = LseGradient::given;
  return c;
}

TEST(BackwardLaws, ASumThatBeginsWithARemainderIsCaughtWhereDOIs0) {
  expect_gradients_caught("gradient_of_zero", [](const BackwardArguments& a) {
    const bool is_zero = std::ranges::all_of(values_of(a.d_o, output_shape(a.problem)),
                                             [](float x) { return x == 0; });
    if (is_zero) values_of(a.dk, key_shape(a.problem))[3] += 1e-30F;
  });
}

TEST(BackwardLaws, AThresholdOnGradientsIsCaughtByScalingDO) {
  expect_gradients_caught("scaled_gradient_bitwise", [](const BackwardArguments& a) {
    for (float& x : values_of(a.dq, query_shape(a.problem))) {
      if (std::abs(x) < 0.01F) x = 0;
    }
  });
}

TEST(BackwardLaws, ADVThatDependsOnVIsCaught) {
  expect_gradients_caught("values_do_not_enter_dv", [](const BackwardArguments& a) {
    const auto v = values_of(a.v, value_shape(a.problem));
    values_of(a.dv, value_shape(a.problem))[5] += 1e-3F * v[5];
  });
}

TEST(BackwardLaws, AHiddenKeyThatReachesTheGradientsOfOthersIsCaught) {
  expect_gradients_caught("hidden_keys_irrelevant", [](const BackwardArguments& a) {
    const auto v = values_of(a.v, value_shape(a.problem));
    if (std::ranges::none_of(v, [](float x) { return std::isnan(x); })) return;
    std::ranges::fill(values_of(a.dk, key_shape(a.problem)),
                      std::numeric_limits<float>::quiet_NaN());
  });
}

TEST(BackwardLaws, ARowThatIsLostOrCountedTwiceIsCaughtByUnitWeights) {
  expect_gradients_caught("unit_weights_sum_exactly", [](const BackwardArguments& a) {
    const auto d_o = values_of(a.d_o, output_shape(a.problem));
    const auto dv = values_of(a.dv, value_shape(a.problem));
    for (std::size_t c = 0; c < 8; ++c) dv[c] -= d_o[c];
  });
}

TEST(BackwardLaws, ADeltaOfAnotherRowIsCaughtByEqualValues) {
  expect_gradients_caught("equal_values_leave_no_dscore", [](const BackwardArguments& a) {
    // What a row's dS makes of dQ where delta is a little off.
    for (float& x : values_of(a.dq, query_shape(a.problem))) x += 1e-12F;
  });
}

TEST(BackwardLaws, AWeightThatGoesToTheWrongKeyIsCaughtByPeakedRows) {
  // The first two keys change places, as where P is transposed or a tile is taken for another.
  expect_gradients_caught("peaked_rows_copy_gradients", [](const BackwardArguments& a) {
    const auto dv = values_of(a.dv, value_shape(a.problem));
    for (std::size_t c = 0; c < 8; ++c) std::swap(dv[c], dv[8 + c]);
  });
  // What is left of a row that takes the LSE or delta of another.
  expect_gradients_caught("peaked_rows_copy_gradients", [](const BackwardArguments& a) {
    values_of(a.dq, query_shape(a.problem))[60] += 1e-30F;
  });
}

TEST(BackwardLaws, ADLseThatIsNotReadOrOfTheWrongSignIsCaughtByWhatItWeighs) {
  for (const float sign : {0.0F, -1.0F}) {
    expect_gradients_caught(
        "lse_gradient_weighs_keys",
        [&](const BackwardArguments& a) {
          for (float& x : values_of(a.dq, query_shape(a.problem))) x *= sign;
        },
        case_with_lse_gradient());
  }
  const auto into_dv = [](const BackwardArguments& a) {
    values_of(a.dv, value_shape(a.problem))[5] += 1e-3F * std::abs(a.d_lse[35]) + 1e-30F;
  };
  expect_gradients_caught("lse_gradient_weighs_keys", into_dv, case_with_lse_gradient());
}

TEST(BackwardLaws, APathOfItsOwnWithoutADLseThatGivesOtherBitsIsCaught) {
  const auto one_ulp_where_absent = [](const BackwardArguments& a) {
    if (a.d_lse == nullptr) values_of(a.dq, query_shape(a.problem))[60] *= 1 + 0x1p-23F;
  };
  expect_gradients_caught("absent_lse_gradient_is_zero", one_ulp_where_absent,
                          case_with_lse_gradient());
}

TEST(BackwardLaws, EveryLawHoldsForACorrectKernelThatIsGivenADLse) {
  for (const char* const name : {"backward_standard", "backward_tiled"}) {
    const KernelInfo& kernel = *find_kernel(name, Executor::cpu);
    for (const char* const family : {"normal", "gradient_scaled", "gradient_along_o"}) {
      for (const ElementType type : kernel.element_types) {
        Case c = case_with_lse_gradient();
        c.kernel = name;
        c.problem.element_type = type;
        c.plan = kernel.plans(c.problem).front();
        c.inputs.family = family;
        HostMemoryDevice device;
        attest::Run run(kernel, c, device);
        EXPECT_EQ(verify_case(run, {.every_law = true}).verdict, Verdict::passed)
            << name << ' ' << family << ' ' << to_string(c.problem);
      }
    }
  }
}

TEST(BackwardLaws, ASumThatWentRoundTheIntegersIsCaughtAndNaNIsNot) {
  const auto verdict = [](const GradientSabotage& sabotage) {
    const Case c = gradient_case();
    const KernelInfo* const correct = find_kernel(c.kernel, Executor::cpu);
    KernelInfo kernel = *correct;
    kernel.precision = [&](const Problem& problem, const Plan& plan) {
      auto how = correct->precision(problem, plan).as<BackwardRoundings>();
      how.sums_dq_in_units = true;
      return how;
    };
    kernel.launch = [&](const Arguments& a, Device& device) {
      correct->launch(a, device);
      sabotage(a);
    };
    HostMemoryDevice device;
    attest::Run run(kernel, c, device);
    return verify_case(run, {.glob = "rows_past_the_range_are_nan", .every_law = true}).verdict;
  };
  const auto first_of_dq = [](const BackwardArguments& a) -> float& {
    return values_of(a.dq, query_shape(a.problem))[60];
  };
  EXPECT_EQ(verdict([](const BackwardArguments&) {}), Verdict::passed);
  EXPECT_EQ(verdict([&](const BackwardArguments& a) { first_of_dq(a) = NAN; }), Verdict::passed);
  EXPECT_EQ(verdict([&](const BackwardArguments& a) { first_of_dq(a) *= -1; }), Verdict::failed);
}

TEST(BackwardLaws, CopiesOfHeadsNeedNoMemoryForGapsBetweenThem) {
  const KernelInfo& kernel = *find_kernel("bwd_simple", Executor::simt);
  const auto device = make_device(Executor::simt);
  Case c{.kernel = kernel.name, .problem = problem_from_string("b1 h10/5 q4 k4 d8")};
  c.problem.operation = &backward_operation;
  c.plan = kernel.plans(c.problem).front();
  c.layouts[backward::k] = {.order = DimOrder::hbnd, .outer_gap = far_elements / 2};
  attest::Run run(kernel, c, *device);
  EXPECT_EQ(verify_case(run, {.glob = "groups_equal_copied_heads", .every_law = true}).verdict,
            Verdict::passed);
}

TEST(BackwardLaws, AHeadOfAGroupThatIsNotSummedIsCaughtByCopiedHeads) {
  expect_gradients_caught("groups_equal_copied_heads", [](const BackwardArguments& a) {
    if (a.problem.kv_heads == a.problem.query_heads) return;
    for (float& x : values_of(a.dk, key_shape(a.problem))) x /= 2;
  });
  expect_gradients_caught("groups_equal_copied_heads", [](const BackwardArguments& a) {
    if (a.problem.kv_heads == a.problem.query_heads) return;
    values_of(a.dq, query_shape(a.problem))[60] *= 1 + 0x1p-23F;
  });
}

/// Bigger, and of 16 bits, whose roundings the model of gains is about.
Case gradient_case_of_16_bits() {
  Case c = gradient_case();
  c.kernel = "backward_tiled";
  c.problem.query_len = c.problem.key_len = 40;
  c.problem.head_dim = 64;
  c.problem.scale = default_scale(64);
  c.problem.element_type = ElementType::bf16;
  c.plan = {.query_tile = 16, .key_tile = 32};
  return c;
}

/// `change(row, column, x)` of every element of a tensor of 16 bits.
using Change = std::function<double(std::int64_t row, std::int64_t column, double x)>;
void change_each(void* tensor, const Shape& shape, const Change& change) {
  auto* const bits = static_cast<std::uint16_t*>(tensor);
  for (std::int64_t i = 0; i < elements_of(shape); ++i) {
    const double x = change(i / shape[3], i % shape[3], decode(ElementType::bf16, bits[i]));
    bits[i] = static_cast<std::uint16_t>(
        encode(ElementType::bf16, static_cast<float>(round_to(ElementType::bf16, x))));
  }
}

Verdict verdict_of_16_bits(const std::string& law, const GradientSabotage& sabotage,
                           const Case& c = gradient_case_of_16_bits()) {
  const KernelInfo* const correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.launch = [&](const Arguments& all, Device& device) {
    correct->launch(all, device);
    sabotage(all);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

TEST(BackwardLaws, AGradientThatIsALittleTooShortIsCaughtByItsGain) {
  const auto times = [](double factor) {
    return [factor](const BackwardArguments& a) {
      for (const auto& [data, shape] :
           {std::pair(a.dq, query_shape(a.problem)), std::pair(a.dk, key_shape(a.problem)),
            std::pair(a.dv, value_shape(a.problem))}) {
        change_each(data, shape, [&](std::int64_t, std::int64_t, double x) { return x * factor; });
      }
    };
  };
  for (const char* const law : {"dq_gain", "dk_gain", "dv_gain"}) {
    EXPECT_EQ(verdict_of_16_bits(law, times(1)), Verdict::passed) << law;
    EXPECT_EQ(verdict_of_16_bits(law, times(0.996)), Verdict::failed) << law;
  }
}

TEST(BackwardLaws, TheGainOfDVAllowsForRowsThatAllRoundTheSameNumber) {
  Case c = gradient_case_of_16_bits();
  c.problem.mask = Mask::window_bottom_right;  // of one key: its weight is 1, or 1 / 0.9
  c.problem.window = {0, 0};
  c.problem.dropout = 0.1F;
  const auto times = [](double factor) {
    return [factor](const BackwardArguments& a) {
      change_each(a.dv, value_shape(a.problem),
                  [&](std::int64_t, std::int64_t, double x) { return x * factor; });
    };
  };
  EXPECT_EQ(verdict_of_16_bits("dv_gain", times(1), c), Verdict::passed);
  EXPECT_EQ(verdict_of_16_bits("dv_gain", times(0.992), c), Verdict::failed);
}

TEST(BackwardLaws, AnErrorOfDeltaOfEitherSignIsCaughtAlongTheMeanKeyAndByNoGain) {
  // What a delta does that is off by 0.02 up and down.
  const auto off = [](const BackwardArguments& a) {
    const Problem& p = a.problem;
    const auto* const k = static_cast<const std::uint16_t*>(a.k);
    change_each(a.dq, query_shape(p), [&](std::int64_t row, std::int64_t column, double x) {
      const std::int64_t b = row / (p.query_heads * p.query_len);
      const std::int64_t h = p.kv_head_of(row / p.query_len % p.query_heads);
      double mean = 0;
      for (std::int64_t j = 0; j < p.key_len; ++j) {
        mean += decode(ElementType::bf16,
                       k[((b * p.kv_heads + h) * p.key_len + j) * p.head_dim + column]);
      }
      mean /= static_cast<double>(p.key_len);
      return x + (row % 2 == 0 ? 0.02 : -0.02) * p.scale * mean;
    });
  };
  EXPECT_EQ(verdict_of_16_bits("dq_along_mean_key", [](const BackwardArguments&) {}),
            Verdict::passed);
  EXPECT_EQ(verdict_of_16_bits("dq_along_mean_key", off), Verdict::failed);
  EXPECT_EQ(verdict_of_16_bits("dq_gain", off), Verdict::passed);
}

TEST(BackwardLaws, GradientsThatAreNotThoseOfTheForwardPassBeforeAreCaught) {
  expect_gradients_caught("gradient_of_both_passes", [](const BackwardArguments& a) {
    values_of(a.dq, query_shape(a.problem))[60] *= 1.01F;
  });
  expect_gradients_caught("gradient_of_both_passes", [](const BackwardArguments& a) {
    values_of(a.dk, key_shape(a.problem))[2] *= 1.01F;
  });
  expect_gradients_caught("gradient_of_both_passes", [](const BackwardArguments& a) {
    values_of(a.dv, value_shape(a.problem))[2] *= 1.01F;
  });
}

TEST(BackwardLaws, AnErrorOfEachGradientIsCaughtByItsBound) {
  expect_gradients_caught("within_bound", [](const BackwardArguments& a) {
    values_of(a.dq, query_shape(a.problem))[60] *= 1.001F;
  });
  expect_gradients_caught("dk_within_bound", [](const BackwardArguments& a) {
    values_of(a.dk, key_shape(a.problem))[2] *= 1.001F;
  });
  expect_gradients_caught("dv_within_bound", [](const BackwardArguments& a) {
    values_of(a.dv, value_shape(a.problem))[2] *= 1.001F;
  });
}

}  // namespace
}  // namespace attest
