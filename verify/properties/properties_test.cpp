// Every law against a saboteur: a correct kernel whose result is then spoilt in the one way the law
// is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

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

TEST(Properties, EveryLawHasASaboteurHereOrAMutant) {
  const std::vector<std::string> covered{"within_bound",           "lse_within_bound",
                                         "guards_untouched",       "outputs_written",
                                         "inputs_unmodified",      "empty_rows",
                                         "rerun_bitwise",          "layout_neutral",
                                         "constant_values",        "permuted_heads_bitwise",
                                         "future_keys_irrelevant", "nan_stays_in_its_rows",
                                         "plan_invariance",        "scaled_values_bitwise",
                                         "clean_execution" /* mutants c15 and c17 */};
  for (const Property& property : all_properties()) {
    EXPECT_NE(std::ranges::find(covered, property.name), covered.end()) << property.name;
  }
  EXPECT_EQ(all_properties().size(), covered.size());
}

}  // namespace
}  // namespace attest
