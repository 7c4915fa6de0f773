// The laws about dense problems against saboteurs; shape_laws_test.cpp and statistic_laws_test.cpp
// have the others.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <optional>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

TEST(Laws, AnErrorPastTheBoundIsCaught) {
  expect_caught("within_bound",
                [](const ForwardArguments& a) { o_row(a, 1, 3, 8)[15] *= 1.0001F; });
  expect_caught("within_bound",
                [](const ForwardArguments& a) { o_row(a, 1, 3, 8)[15] = std::nanf(""); });
}

TEST(Laws, AWrongLseIsCaughtEvenIfOIsRight) {
  expect_caught("lse_within_bound", [](const ForwardArguments& a) {
    a.lse[a.problem.rows() - 1] *= std::log2(std::exp(1.0F));
  });
}

TEST(Laws, AWriteOutsideTheTensorsIsCaught) {
  expect_caught("guards_untouched",
                [](const ForwardArguments& a) { o_row(a, 0, 0, 0)[-1] = 0.0F; });
  expect_caught("guards_untouched",
                [](const ForwardArguments& a) { o_row(a, 0, 0, 0)[a.problem.head_dim] = 0.0F; });
}

TEST(Laws, AnUnwrittenElementIsCaught) {
  expect_caught("outputs_written", [](const ForwardArguments& a) {
    o_row(a, 1, 0, 4)[3] = decode(ElementType::fp32, poison_bits(ElementType::fp32));
  });
}

TEST(Laws, AModifiedInputIsCaught) {
  expect_caught("inputs_unmodified", [](const ForwardArguments& a) {
    // Pages of inputs cannot be written to, unless a kernel makes it so.
    void* const q = const_cast<void*>(a.q);
    const auto page = reinterpret_cast<std::uintptr_t>(q) / 4096 * 4096;
    ASSERT_EQ(mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE), 0);
    *static_cast<float*>(q) += 1.0F;
  });
}

TEST(Laws, AnEmptyRowThatIsNotZeroOrHasAFiniteLseIsCaught) {
  expect_caught("empty_rows", [](const ForwardArguments& a) { o_row(a, 0, 1, 0)[2] = 1e-30F; });
  expect_caught("empty_rows", [](const ForwardArguments& a) { a.lse[0] = -49993.0F; });
}

TEST(Laws, AResultThatChangesFromLaunchToLaunchIsCaught) {
  int launches = 0;
  expect_caught("rerun_bitwise", [&](const ForwardArguments& a) {
    if (++launches % 2 == 0) o_row(a, 0, 0, 8)[0] = std::nextafter(o_row(a, 0, 0, 8)[0], 9.0F);
  });
}

TEST(Laws, AResultThatDependsOnStridesIsCaught) {
  expect_caught("layout_neutral", [](const ForwardArguments& a) {
    o_row(a, 0, 0, 8)[0] += 1e-3F * static_cast<float>(a.k_strides.row);
  });
}

TEST(Laws, AWeightThatIsMissingFromTheDenominatorIsCaughtByConstantValues) {
  expect_caught("constant_values", [](const ForwardArguments& a) {
    for (std::int64_t d = 0; d < a.problem.head_dim; ++d) o_row(a, 1, 1, 8)[d] *= 1.001F;
  });
}

TEST(Laws, AnLseThatFollowsAConstantVIsCaughtByConstantValues) {
  expect_caught("constant_values", [](const ForwardArguments& a) {
    const float* const v = static_cast<const float*>(a.v);
    a.lse[a.problem.rows() - 1] += v[0] == v[a.v_strides.row] ? 0.1F : 0.0F;
  });
}

TEST(Laws, AHeadThatIsTreatedUnlikeTheOthersIsCaught) {
  expect_caught("permuted_heads_bitwise", [](const ForwardArguments& a) {
    o_row(a, 0, 1, 8)[0] = std::nextafter(o_row(a, 0, 1, 8)[0], 9.0F);
  });
}

TEST(Laws, AnInfluenceOfFutureKeysIsCaught) {
  Case c = plain_case();
  c.problem.mask = Mask::causal_top_left;
  expect_caught(
      "hidden_keys_irrelevant",
      [](const ForwardArguments& a) {
        const float last =
            static_cast<const float*>(a.v)[a.v_strides.offset(0, 0, a.problem.key_len - 1)];
        o_row(a, 0, 0, 0)[0] += 0.0F * last;  // 0 * NaN
      },
      c);
}

TEST(Laws, AnInfluenceOfANeighboursQueryIsCaught) {
  expect_caught("other_queries_irrelevant", [](const ForwardArguments& a) {
    const auto query = [&](std::int64_t n) {
      return static_cast<const float*>(a.q)[a.q_strides.offset(0, 0, n)];
    };
    // A reference that a pair of rows shares.
    for (std::int64_t n = 1; n < a.problem.query_len; n += 2) {
      if (std::abs(query(n)) > 8 || std::abs(query(n - 1)) > 8) {
        for (const std::int64_t row : {n - 1, n}) {
          o_row(a, 0, 0, row)[0] = std::nextafter(o_row(a, 0, 0, row)[0], 9.0F);
        }
      }
    }
  });
}

TEST(Laws, ASwallowedNaNIsCaught) {
  expect_caught("nan_stays_in_its_rows", [](const ForwardArguments& a) {
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

TEST(Laws, ANaNOfOneValueThatSpreadsOverItsRowIsCaught) {
  const Sabotage spread = [](const ForwardArguments& a) {
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
    EXPECT_EQ(verdict_of("nan_stays_in_its_rows", c, [](const ForwardArguments&) {}),
              Verdict::passed);
    caught += verdict_of("nan_stays_in_its_rows", c, spread) == Verdict::failed ? 1 : 0;
  }
  EXPECT_GT(caught, 0);
}

TEST(Laws, AResultThatDependsOnThePlanBeyondTheBoundsIsCaught) {
  expect_caught("plan_invariance", [](const ForwardArguments& a) {
    o_row(a, 0, 2, 8)[5] += 1e-3F * static_cast<float>(a.plan.key_tile);
  });
}

TEST(Laws, AnAdditiveErrorTooSmallForTheBoundIsCaughtByScaledValues) {
  const Sabotage sabotage = [](const ForwardArguments& a) {
    float& o = o_row(a, 0, 2, 8)[5];
    o += 4.0F * (std::nextafter(0.5F, 1.0F) - 0.5F);
  };
  expect_caught("scaled_values_bitwise", sabotage);
}

// Cases where a correct kernel once broke this law: O is rounded up to the smallest normal number
// of fp16, and weights far from 1 because the bound is infinite.
TEST(Laws, ScaledValuesAreExactOnlyAboveTheSmallestNormalAndWhereThereIsABound) {
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
    EXPECT_EQ(verdict_of("scaled_values_bitwise", c, [](const ForwardArguments&) {}),
              Verdict::passed)
        << to_string(c);
  }
}

// All weights of this row vanish, as they may where the bound is infinite: its NaN cannot arrive.
TEST(Laws, ANaNMayGetLostInARowWithoutABound) {
  Case c;
  c.kernel = "emulated_fma";
  c.problem = {.key_len = 3, .head_dim = 4, .scale = default_scale(4)};
  c.plan.key_tile = 16;
  c.inputs = {.family = "huge_logits",
              .seed = 11460983319809722276ULL,
              .magnitude = 4e9,
              .round_to_integers = true};
  EXPECT_EQ(verdict_of("nan_stays_in_its_rows", c, [](const ForwardArguments&) {}),
            Verdict::passed);
}

TEST(Laws, AKernelThatRefusesWhatItClaimsToSupportBreaksALawOfItsOwn) {
  const auto refuse = [](const ForwardArguments&) { throw KernelError("out of registers"); };
  expect_caught("returns_no_error", refuse);
  expect_caught("within_bound", refuse);
  HostMemoryDevice device;
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  const Case c = plain_case();
  const auto law_broken = [&] {
    attest::Run run(kernel, c, device);
    const CaseVerdict verdict = verify_case(run, {});
    return verdict.failure ? verdict.failure->law : "";
  };
  kernel.precision = [](const Problem&, const Plan&) -> PrecisionPlan { throw KernelError("no"); };
  EXPECT_EQ(law_broken(), "returns_no_error");
  kernel.launch = [](const ForwardArguments&, Device&) { throw KernelError("no"); };
  EXPECT_EQ(law_broken(), "returns_no_error");
}

TEST(Laws, AFloatingPointModeThatIsNotRestoredIsCaughtAndDoesNotReachTheJudge) {
  const int before = std::fegetround();
  expect_caught("floating_point_mode_kept",
                [](const ForwardArguments&) { (void)std::fesetround(FE_UPWARD); });
  expect_caught("floating_point_mode_kept",
                [](const ForwardArguments&) { _mm_setcsr(_mm_getcsr() | 0x8040U); });
  EXPECT_EQ(std::fegetround(), before);
  EXPECT_EQ(_mm_getcsr() & 0x8040U, 0U);
}

TEST(Laws, ASecondRequestThatDiffersFromItsTwinIsCaught) {
  expect_caught("duplicated_request_bitwise", [](const ForwardArguments& a) {
    o_row(a, 1, 0, 8)[0] = std::nextafter(o_row(a, 1, 0, 8)[0], 9.0F);
  });
  expect_caught("duplicated_request_bitwise", [](const ForwardArguments& a) {
    float& last = a.lse[a.problem.rows() - 1];
    last = std::nextafter(last, 9.0F);
  });
}

TEST(Laws, ARequestThatDependsOnItsBatchMatesIsCaught) {
  expect_caught("batch_mates_irrelevant", [](const ForwardArguments& a) {
    float& o = o_row(a, a.problem.batch - 1, 0, 8)[0];
    if (a.problem.batch > 1) o = std::nextafter(o, 9.0F);
  });
  expect_caught("batch_mates_irrelevant", [](const ForwardArguments& a) {
    float& last = a.lse[a.problem.rows() - 1];
    if (a.problem.batch > 1) last = std::nextafter(last, 9.0F);
  });
}

TEST(Laws, StateThatSurvivesALaunchOfNaNsIsCaught) {
  bool saw_nan = false;
  expect_caught("earlier_launch_irrelevant", [&](const ForwardArguments& a) {
    float& o = o_row(a, 0, 0, 8)[0];
    if (saw_nan) o = std::nextafter(o, 9.0F);
    saw_nan = saw_nan || std::isnan(o);
  });
}

TEST(Laws, AScaleThatIsRememberedIsCaught) {
  std::optional<float> first;
  expect_caught("scale_not_cached", [&](const ForwardArguments& a) {
    if (!first) first = a.problem.scale;
    if (a.problem.scale != *first) o_row(a, 0, 0, 8)[0] += 1e-2F;  // as if for the first scale
  });
  bool changed = false;
  expect_caught("scale_not_cached", [&](const ForwardArguments& a) {
    if (!first) first = a.problem.scale;
    if (changed) a.lse[a.problem.rows() - 1] += 1e-2F;
    changed = changed || a.problem.scale != *first;
  });
}

TEST(Laws, AMeanThatIsNotCorrectlyRoundedIsCaught) {
  const auto nudge = [](const ForwardArguments& a) {
    float& o = o_row(a, 0, 1, 5)[2];  // sees four keys
    o = std::nextafter(o, 100.0F);
  };
  expect_caught("equal_scores_exact_mean", nudge);
  Case fused = plain_case();
  fused.kernel = "o8_exp2_skip_rescale";
  expect_caught("equal_scores_exact_mean", nudge, fused);
  expect_caught("equal_scores_exact_mean", [](const ForwardArguments& a) {
    a.lse[a.problem.rows() - 1] *= std::log2(std::exp(1.0F));
  });
}

TEST(Laws, AnAnswerThatMovesWithAllKeysOrNotWithAllValuesIsCaught) {
  expect_caught("shifted_keys_shift_lse", [](const ForwardArguments& a) {
    o_row(a, 0, 0, 8)[0] += 1e-2F * static_cast<const float*>(a.k)[a.k_strides.offset(0, 0, 0)];
  });
  expect_caught("shifted_values_shift_output",
                [](const ForwardArguments& a) { o_row(a, 0, 0, 8)[0] *= 1.001F; });
}

TEST(Laws, EveryLawHasASaboteurHereOrAMutant) {
  const std::vector<std::string> covered{
      "returns_no_error",
      "floating_point_mode_kept",
      "within_bound",
      "lse_within_bound",
      "guards_untouched",
      "outputs_written",
      "inputs_unmodified",
      "empty_rows",
      "rerun_bitwise",
      "layout_neutral",
      "constant_values",
      "permuted_heads_bitwise",
      "hidden_keys_irrelevant",
      "other_queries_irrelevant",
      "nan_stays_in_its_rows",
      "infinite_values_stay_infinite",
      "infinite_keys_have_exact_weights",
      "plan_invariance",
      "scaled_values_bitwise",
      "duplicated_request_bitwise",
      "batch_mates_irrelevant",
      "batch_mates_replaced",
      "earlier_launch_irrelevant",
      "scale_not_cached",
      "equal_scores_exact_mean",
      "lengths_equal_single_entries",
      "padding_equals_removal",
      "equal_masks_agree",
      "huge_softcap_is_none",
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
      "clean_execution" /* mutants c15 and c17 */,
      "ranks_agree_with_one" /* and the next: rank_laws_test */,
      "distribution_is_a_permutation",
      "scale_may_move" /* and the next 9: quantised_laws_test */,
      "equal_scales_agree",
      "equal_powers_of_two_agree",
      "keys_may_change_places",
      "same_numbers_in_another_code",
      "columns_carry_their_scales",
      "unit_values_show_weights",
      "long_rows_keep_their_mean",
      "whole_scores_are_exact",
      "one_key_shows_codes",
      "codes_bitwise" /* and the next two: q01 to q22, */,
      "codes_come_back" /* and quantise_laws_test */,
      "scales_within_bound",
      "copies_of_a_part_give_it_back",
      "one_part_is_a_copy",
      "empty_part_changes_nothing",
      "permuted_parts_agree",
      "nan_part_stays_in_its_row",
      "unused_slots_irrelevant",
      "capacity_irrelevant",
      "lengths_may_change",
      "shifted_keys_shift_lse",
      "shifted_values_shift_output",
      "page_order_irrelevant" /* z48 */,
      "page_form_irrelevant" /* z51 */,
      "hidden_chunk_is_absent" /* z63 */,
      "single_queries_equal_rows" /* z70 */,
      "shared_pages_equal_copies" /* z74 */,
      "more_mates_irrelevant" /* z75 */,
      "dk_within_bound" /* b05 */,
      "dv_within_bound" /* b04 */,
      "gradient_of_zero",
      "scaled_gradient_bitwise",
      "values_do_not_enter_dv",
      "unit_weights_sum_exactly",
      "equal_values_leave_no_dscore",
      "lse_gradient_weighs_keys",
      "absent_lse_gradient_is_zero",
      "peaked_rows_copy_gradients",
      "groups_equal_copied_heads",
      "dq_gain",
      "dk_gain",
      "dv_gain",
      "dq_along_mean_key",
      "gradient_of_both_passes",
      "rows_past_the_range_are_nan" /* b35 */,
      "indices_may_change",
      "other_problem_between",
      "leftovers_irrelevant",
      "graph_may_be_replayed",
      "entry_gaps_irrelevant",
      "broadcast_equals_copies",
      "absent_sinks_are_minus_infinity",
      "absent_sinks_have_no_gradient",
      "dsinks_within_bound",
      "dbias_within_bound",
      "dropout_of_one_is_values_of_zero",
      "absent_slopes_are_zero",
      "absent_bias_is_zero",
      "shared_bias_equals_copies",
      "constant_bias_moves_lse",
      "slopes_equal_a_bias",
      "bias_hides_as_padding_and_lists",
      "full_lists_are_none",
      "listed_keys_are_all_there_is",
      "one_document_is_none",
      "document_equals_itself_alone",
      "empty_prefix_is_none",
      "full_prefix_is_no_mask",
      "dropout_of_zero_is_none",
      "dropout_leaves_lse",
      "gate_of_one_is_none" /* and the next 5: epilogue_laws_test */,
      "residual_of_minus_zero_is_none",
      "epilogues_leave_lse",
      "gate_of_zero_leaves_the_residual",
      "cancelling_residual",
      "nan_of_epilogue_stays",
      "selection_is_a_set" /* and the next 8: select_laws_test */,
      "selection_is_reachable",
      "scores_belong_to_keys",
      "counts_within_bound",
      "scores_within_bound",
      "moved_keys_move_the_choice",
      "heads_may_change_places",
      "scaled_weights_choose_alike",
      "keys_of_zeros_are_not_chosen"};
  for (const Law& law : all_laws()) {
    EXPECT_NE(std::ranges::find(covered, law.name), covered.end()) << law.name;
  }
  EXPECT_EQ(all_laws().size(), covered.size());
}

}  // namespace
}  // namespace attest
