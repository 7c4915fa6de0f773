// Every law against a saboteur: a correct kernel whose result is then spoilt in the one way the law
// is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "core/host_memory_device.hpp"
#include "core/registry.hpp"
#include "verify/verdict.hpp"

namespace attest {
namespace {

using Sabotage = std::function<void(const Arguments&)>;

float* o_row(const Arguments& a, std::int64_t b, std::int64_t h, std::int64_t n) {
  return static_cast<float*>(a.o) + a.o_strides.offset(b, h, n);
}

Case plain_case() {
  return {.kernel = "o5_deferred",
          .problem = {.batch = 2,
                      .query_heads = 4,
                      .kv_heads = 2,
                      .query_len = 9,
                      .key_len = 7,
                      .head_dim = 16,
                      .mask = Mask::causal_bottom_right,
                      .scale = default_scale(16)},
          .plan = {.key_tile = 3},
          .layouts = {.k = {DimOrder::bnhd, 3, 1}, .o = {DimOrder::bnhd, 5, 2}},
          .inputs = {.seed = 11}};
}

Verdict verdict_of(const std::string& law, const Case& c, const Sabotage& sabotage) {
  const KernelInfo* correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.launch = [&](const Arguments& a, Device& device) {
    correct->launch(a, device);
    sabotage(a);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true}).verdict;
}

/// The law holds for the kernel as it is and fails for the spoilt one.
void expect_caught(const std::string& law, const Sabotage& sabotage, const Case& c = plain_case()) {
  ASSERT_NE(find_property(law), nullptr) << law;
  EXPECT_EQ(verdict_of(law, c, [](const Arguments&) {}), Verdict::passed) << law;
  EXPECT_EQ(verdict_of(law, c, sabotage), Verdict::failed) << law;
}

TEST(Properties, AnErrorPastTheBoundIsCaught) {
  expect_caught("within_bound", [](const Arguments& a) { o_row(a, 1, 3, 8)[15] *= 1.0001F; });
  expect_caught("within_bound", [](const Arguments& a) { o_row(a, 1, 3, 8)[15] = std::nanf(""); });
}

TEST(Properties, AWrongLseIsCaughtEvenIfOIsRight) {
  expect_caught("lse_within_bound", [](const Arguments& a) {
    a.lse[a.problem.rows() - 1] *= std::log2(std::exp(1.0F));
  });
}

TEST(Properties, AWriteOutsideTheTensorsIsCaught) {
  expect_caught("guards_untouched", [](const Arguments& a) { o_row(a, 0, 0, 0)[-1] = 0.0F; });
  expect_caught("guards_untouched",
                [](const Arguments& a) { o_row(a, 0, 0, 0)[a.problem.head_dim] = 0.0F; });
}

TEST(Properties, AnUnwrittenElementIsCaught) {
  expect_caught("outputs_written", [](const Arguments& a) {
    o_row(a, 1, 0, 4)[3] = decode(ElementType::fp32, poison_bits(ElementType::fp32));
  });
}

TEST(Properties, AModifiedInputIsCaught) {
  expect_caught("inputs_unmodified",
                [](const Arguments& a) { *static_cast<float*>(const_cast<void*>(a.q)) += 1.0F; });
}

TEST(Properties, AnEmptyRowThatIsNotZeroOrHasAFiniteLseIsCaught) {
  expect_caught("empty_rows", [](const Arguments& a) { o_row(a, 0, 1, 0)[2] = 1e-30F; });
  expect_caught("empty_rows", [](const Arguments& a) { a.lse[0] = -49993.0F; });
}

TEST(Properties, AResultThatChangesFromLaunchToLaunchIsCaught) {
  int launches = 0;
  expect_caught("rerun_bitwise", [&](const Arguments& a) {
    if (++launches % 2 == 0) o_row(a, 0, 0, 8)[0] = std::nextafter(o_row(a, 0, 0, 8)[0], 9.0F);
  });
}

TEST(Properties, AResultThatDependsOnStridesIsCaught) {
  expect_caught("layout_neutral", [](const Arguments& a) {
    o_row(a, 0, 0, 8)[0] += 1e-3F * static_cast<float>(a.k_strides.row);
  });
}

TEST(Properties, AWeightThatIsMissingFromTheDenominatorIsCaughtByConstantValues) {
  expect_caught("constant_values", [](const Arguments& a) {
    for (std::int64_t d = 0; d < a.problem.head_dim; ++d) o_row(a, 1, 1, 8)[d] *= 1.001F;
  });
}

TEST(Properties, AnLseThatFollowsAConstantVIsCaughtByConstantValues) {
  expect_caught("constant_values", [](const Arguments& a) {
    const float* const v = static_cast<const float*>(a.v);
    a.lse[a.problem.rows() - 1] += v[0] == v[a.v_strides.row] ? 0.1F : 0.0F;
  });
}

TEST(Properties, AHeadThatIsTreatedUnlikeTheOthersIsCaught) {
  expect_caught("permuted_heads_bitwise", [](const Arguments& a) {
    o_row(a, 0, 1, 8)[0] = std::nextafter(o_row(a, 0, 1, 8)[0], 9.0F);
  });
}

TEST(Properties, AnInfluenceOfFutureKeysIsCaught) {
  Case c = plain_case();
  c.problem.mask = Mask::causal_top_left;
  expect_caught(
      "future_keys_irrelevant",
      [](const Arguments& a) {
        const float last =
            static_cast<const float*>(a.v)[a.v_strides.offset(0, 0, a.problem.key_len - 1)];
        o_row(a, 0, 0, 0)[0] += 0.0F * last;  // 0 * NaN
      },
      c);
}

TEST(Properties, ASwallowedNaNIsCaught) {
  expect_caught("nan_stays_in_its_rows", [](const Arguments& a) {
    for (std::int64_t b = 0; b < a.problem.batch; ++b) {
      for (std::int64_t h = 0; h < a.problem.query_heads; ++h) {
        for (std::int64_t n = 0; n < a.problem.query_len; ++n) {
          for (std::int64_t d = 0; d < a.problem.head_dim; ++d) {
            if (std::isnan(o_row(a, b, h, n)[d])) o_row(a, b, h, n)[d] = 0.0F;
          }
        }
      }
    }
  });
}

TEST(Properties, ANaNOfOneValueThatSpreadsOverItsRowIsCaught) {
  const Sabotage spread = [](const Arguments& a) {
    for (std::int64_t row = 0; row < a.problem.query_len; ++row) {
      float* const o = o_row(a, 0, 0, row);
      const bool any =
          std::any_of(o, o + a.problem.head_dim, [](float x) { return std::isnan(x); });
      if (any) std::fill(o, o + a.problem.head_dim, std::nanf(""));
    }
  };
  // The case's seed decides whether the NaN goes to Q, K or V and to which head.
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Case c = plain_case();
    c.inputs.seed = seed;
    EXPECT_EQ(verdict_of("nan_stays_in_its_rows", c, [](const Arguments&) {}), Verdict::passed);
    caught += verdict_of("nan_stays_in_its_rows", c, spread) == Verdict::failed ? 1 : 0;
  }
  EXPECT_GT(caught, 0);
}

TEST(Properties, AResultThatDependsOnThePlanBeyondTheBoundsIsCaught) {
  expect_caught("plan_invariance", [](const Arguments& a) {
    o_row(a, 0, 2, 8)[5] += 1e-3F * static_cast<float>(a.plan.key_tile);
  });
}

TEST(Properties, AnAdditiveErrorTooSmallForTheBoundIsCaughtByScaledValues) {
  const Sabotage sabotage = [](const Arguments& a) {
    float& o = o_row(a, 0, 2, 8)[5];
    o += 4.0F * (std::nextafter(0.5F, 1.0F) - 0.5F);
  };
  expect_caught("scaled_values_bitwise", sabotage);
}

// Cases where a correct kernel once broke this law: O is rounded up to the smallest normal number
// of fp16, and weights far from 1 because the bound is infinite.
TEST(Properties, ScaledValuesAreExactOnlyAboveTheSmallestNormalAndWhereThereIsABound) {
  Case edge;
  edge.kernel = "emulated_fma";
  edge.problem = {.key_len = 33, .head_dim = 64, .element_type = ElementType::fp16, .scale = 0.3F};
  edge.plan.key_tile = 16;
  edge.inputs = {.family = "all_negative", .seed = 14376995495844912514ULL, .magnitude = 200};
  Case huge;
  huge.kernel = "o8_exp2_skip_rescale";
  huge.problem = {.key_len = 1, .head_dim = 16, .scale = default_scale(16)};
  huge.plan.key_tile = 1;
  huge.inputs = {.family = "equal_huge_logits", .magnitude = 1e9};
  for (const Case& c : {edge, huge}) {
    EXPECT_EQ(verdict_of("scaled_values_bitwise", c, [](const Arguments&) {}), Verdict::passed)
        << to_string(c);
  }
}

// All weights of this row vanish, as they may where the bound is infinite: its NaN cannot arrive.
TEST(Properties, ANaNMayGetLostInARowWithoutABound) {
  Case c;
  c.kernel = "emulated_fma";
  c.problem = {.key_len = 3, .head_dim = 4, .scale = default_scale(4)};
  c.plan.key_tile = 16;
  c.inputs = {.family = "huge_logits",
              .seed = 11460983319809722276ULL,
              .magnitude = 4e9,
              .round_to_integers = true};
  EXPECT_EQ(verdict_of("nan_stays_in_its_rows", c, [](const Arguments&) {}), Verdict::passed);
}

TEST(Properties, AKernelThatRefusesWhatItClaimsToSupportIsCaught) {
  expect_caught("within_bound", [](const Arguments&) { throw KernelError("out of registers"); });
}

TEST(Properties, ASecondRequestThatDiffersFromItsTwinIsCaught) {
  expect_caught("duplicated_request_bitwise", [](const Arguments& a) {
    o_row(a, 1, 0, 8)[0] = std::nextafter(o_row(a, 1, 0, 8)[0], 9.0F);
  });
  expect_caught("duplicated_request_bitwise", [](const Arguments& a) {
    float& last = a.lse[a.problem.rows() - 1];
    last = std::nextafter(last, 9.0F);
  });
}

TEST(Properties, ARequestThatDependsOnItsBatchMatesIsCaught) {
  expect_caught("batch_mates_irrelevant", [](const Arguments& a) {
    float& o = o_row(a, a.problem.batch - 1, 0, 8)[0];
    if (a.problem.batch > 1) o = std::nextafter(o, 9.0F);
  });
  expect_caught("batch_mates_irrelevant", [](const Arguments& a) {
    float& last = a.lse[a.problem.rows() - 1];
    if (a.problem.batch > 1) last = std::nextafter(last, 9.0F);
  });
}

TEST(Properties, StateThatSurvivesALaunchOfNaNsIsCaught) {
  bool saw_nan = false;
  expect_caught("earlier_launch_irrelevant", [&](const Arguments& a) {
    float& o = o_row(a, 0, 0, 8)[0];
    if (saw_nan) o = std::nextafter(o, 9.0F);
    saw_nan = saw_nan || std::isnan(o);
  });
}

TEST(Properties, AScaleThatIsRememberedIsCaught) {
  std::optional<float> first;
  expect_caught("scale_not_cached", [&](const Arguments& a) {
    if (!first) first = a.problem.scale;
    if (a.problem.scale != *first) o_row(a, 0, 0, 8)[0] += 1e-2F;  // as if for the first scale
  });
  bool changed = false;
  expect_caught("scale_not_cached", [&](const Arguments& a) {
    if (!first) first = a.problem.scale;
    if (changed) a.lse[a.problem.rows() - 1] += 1e-2F;
    changed = changed || a.problem.scale != *first;
  });
}

TEST(Properties, AMeanThatIsNotCorrectlyRoundedIsCaught) {
  const auto nudge = [](const Arguments& a) {
    float& o = o_row(a, 0, 1, 5)[2];  // sees four keys
    o = std::nextafter(o, 100.0F);
  };
  expect_caught("equal_scores_exact_mean", nudge);
  Case fused = plain_case();
  fused.kernel = "o8_exp2_skip_rescale";
  expect_caught("equal_scores_exact_mean", nudge, fused);
  expect_caught("equal_scores_exact_mean", [](const Arguments& a) {
    a.lse[a.problem.rows() - 1] *= std::log2(std::exp(1.0F));
  });
}

/// Enough rows and columns for every statistic.
Case many_rows() {
  return {.kernel = "o5_deferred",
          .problem = {.query_heads = 2,
                      .query_len = 64,
                      .key_len = 96,
                      .head_dim = 64,
                      .scale = default_scale(64)},
          .plan = {.key_tile = 16},
          .inputs = {.seed = 3}};
}

/// `change(o, row, column)` of every element.
Sabotage each_element(std::function<float(float, std::int64_t, std::int64_t)> change) {
  return [change = std::move(change)](const Arguments& a) {
    const ElementType type = a.problem.element_type;
    const std::size_t size = format_of(type).size_bytes;
    for (std::int64_t row = 0; row < a.problem.query_heads * a.problem.query_len; ++row) {
      for (std::int64_t d = 0; d < a.problem.head_dim; ++d) {
        std::byte* const at =
            static_cast<std::byte*>(a.o) +
            size * static_cast<std::size_t>(
                       a.o_strides.offset(0, row / a.problem.query_len, row % a.problem.query_len) +
                       d);
        std::uint32_t bits = 0;
        std::memcpy(&bits, at, size);
        const float changed = change(decode(type, bits), row, d);
        bits = encode(type, static_cast<float>(round_to(type, static_cast<double>(changed))));
        std::memcpy(at, &bits, size);
      }
    }
  };
}

float alternating(std::int64_t number) {
  return number % 2 == 0 ? 1.0F : -1.0F;
}

TEST(Properties, ErrorsOfOThatRoundingsDoNotExplainAreCaught) {
  const auto caught = [](const std::string& law,
                         std::function<float(float, std::int64_t, std::int64_t)> change) {
    Case c = many_rows();
    // In fp32 the normaliser's chain outweighs what columns have for themselves, and a mean square
    // over columns that err together says nothing.
    if (law.ends_with("rms")) c.problem.element_type = ElementType::bf16;
    expect_caught(law, each_element(std::move(change)), c);
  };
  caught("o_largest_deviation", [](float o, std::int64_t row, std::int64_t d) {
    return row == 17 && d == 5 ? o + 1e-5F : o;
  });
  caught("o_row_rms", [](float o, std::int64_t row, std::int64_t d) {
    return row == 17 ? o * (1 + 8e-3F * alternating(d)) : o;
  });
  caught("o_rms", [](float o, std::int64_t row, std::int64_t d) {
    return o * (1 + 8e-3F * alternating(row + d));
  });
  caught("o_gain", [](float o, std::int64_t, std::int64_t) { return o * (1 + 2e-6F); });
  caught("o_row_gain", [](float o, std::int64_t row, std::int64_t) {
    return o * (1 + 6e-6F * alternating(row));
  });
  caught("o_bias", [](float o, std::int64_t, std::int64_t) { return o + 1e-6F; });
}

TEST(Properties, AScaleOffByAFewRoundingsIsCaught) {
  expect_caught(
      "o_temperature",
      [](const Arguments& a) {
        Arguments other = a;
        other.problem.scale *= 1 + 2e-5F;
        HostMemoryDevice device;
        find_kernel("o5_deferred", Executor::cpu)->launch(other, device);
      },
      many_rows());
}

TEST(Properties, ErrorsOfLseThatRoundingsDoNotExplainAreCaught) {
  const auto caught = [](const std::string& law, std::function<float(std::int64_t)> error) {
    expect_caught(
        law,
        [error](const Arguments& a) {
          for (std::int64_t row = 0; row < a.problem.rows(); ++row) a.lse[row] += error(row);
        },
        many_rows());
  };
  caught("lse_largest_deviation", [](std::int64_t row) { return row == 17 ? 1e-5F : 0.0F; });
  caught("lse_rms", [](std::int64_t row) { return 4e-6F * alternating(row); });
  caught("lse_bias", [](std::int64_t) { return 3e-6F; });
}

/// A kernel of the executor that says it runs on a GPU, spoilt or not.
Verdict verdict_of_bits(const std::string& name, const Sabotage& sabotage) {
  const KernelInfo* const original = find_kernel(name, Executor::simt);
  Case c = plain_case();
  c.kernel = name;
  c.problem.element_type = original->element_types.front();
  c.plan = original->plans(c.problem).front();
  KernelInfo kernel = *original;
  kernel.executor = Executor::gpu;
  kernel.launch = [&](const Arguments& a, Device& device) {
    original->launch(a, device);
    sabotage(a);
  };
  const auto device = make_device(Executor::simt);
  Run run(kernel, c, *device);
  return verify_case(run, {.glob = "executor_matches_bitwise", .every_law = true}).verdict;
}

TEST(Properties, OtherBitsThanTheExecutorsAreCaught) {
  const auto nothing = [](const Arguments&) {};
  const auto last_bit = [](const Arguments& a) { *static_cast<unsigned char*>(a.o) ^= 1U; };
  const auto lse = [](const Arguments& a) { a.lse[0] = std::nextafter(a.lse[0], 99.0F); };
  for (const std::string name : {"k10_wide_tiles", "fa2_mma"}) {
    EXPECT_EQ(verdict_of_bits(name, nothing), Verdict::passed) << name;
    EXPECT_EQ(verdict_of_bits(name, last_bit), Verdict::failed) << name;
    EXPECT_EQ(verdict_of_bits(name, lse), Verdict::failed) << name;
  }
  // expf is CUDA's own there and glibc's here: no claim.
  EXPECT_EQ(verdict_of_bits("k1_naive", lse), Verdict::passed);
}

TEST(Properties, EveryLawHasASaboteurHereOrAMutant) {
  const std::vector<std::string> covered{"within_bound",
                                         "lse_within_bound",
                                         "guards_untouched",
                                         "outputs_written",
                                         "inputs_unmodified",
                                         "empty_rows",
                                         "rerun_bitwise",
                                         "layout_neutral",
                                         "constant_values",
                                         "permuted_heads_bitwise",
                                         "future_keys_irrelevant",
                                         "nan_stays_in_its_rows",
                                         "plan_invariance",
                                         "scaled_values_bitwise",
                                         "duplicated_request_bitwise",
                                         "batch_mates_irrelevant",
                                         "earlier_launch_irrelevant",
                                         "scale_not_cached",
                                         "equal_scores_exact_mean",
                                         "o_largest_deviation",
                                         "o_row_rms",
                                         "o_rms",
                                         "o_gain",
                                         "o_row_gain",
                                         "o_temperature",
                                         "o_bias",
                                         "lse_largest_deviation",
                                         "lse_rms",
                                         "lse_bias",
                                         "executor_matches_bitwise",
                                         "clean_execution" /* mutants c15 and c17 */};
  for (const Property& property : all_properties()) {
    EXPECT_NE(std::ranges::find(covered, property.name), covered.end()) << property.name;
  }
  EXPECT_EQ(all_properties().size(), covered.size());
}

}  // namespace
}  // namespace attest
