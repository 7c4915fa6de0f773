// Laws about score modifications, asked of gradients, against saboteurs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/laws/gradient_sabotage_test.hpp"

namespace attest {
namespace {

/// Under the kernel that has every score modification of gradients.
Case modified_case(const std::string& rest) {
  return {.kernel = "backward_tiled",
          .problem = problem_from_string("backward d8 " + rest),
          .plan = {.query_tile = 4, .key_tile = 8},
          .inputs = {.seed = 11}};
}

const std::vector<std::string> modified{
    "b2 h2/1 q9 k20 causal_top_left prefix5",
    "b2 h2/1 q19 k30 documents4 dlse_given",
    "b1 h2/1 q19 k30 causal_bottom_right documents9 prefix3 padding5 bf16",
    "b2 h2/1 q9 k20 lists4",
    "b2 h4/2 q17 k37 lists9 listrows4 listkeys8 fp16",
    "b3 h2/1 q19 k30 lengths4 causal_bottom_right lists6 listkeys3 padding7 softcap3",
    "b1 h2/1 q19 k30 window_bottom_right left7 right2 lists5 listrows8 documents9",
    "b2 h4/2 q9 k20 slopes_given dlse_given",
    "b3 h4/2 q17 k23 lengths3 causal_bottom_right slopes_given softcap3 bf16",
    "b2 h4/2 q9 k20 sinks_given dlse_given",
    "b3 h4/2 q17 k6 causal_bottom_right sinks_given dlse_given padding5 fp16",
    "b3 h2/1 q19 k30 lengths4 documents3 lists6 sinks_given slopes_given",
    "b2 h4/2 q9 k20 bias_full dlse_given",
    "b3 h4/2 q17 k23 lengths3 causal_bottom_right bias_heads softcap3 bf16",
    "b2 h6/3 q13 k20 padding5 bias_entries sinks_given fp16",
    "b3 h4/2 q9 k20 lists4 listkeys2 bias_shared slopes_given dlse_given",
    "b2 h4/2 q9 k20 dropout0.5 philox7 dlse_given",
    "b3 h4/2 q17 k23 lengths3 causal_bottom_right dropout0.1 offset9 softcap3 bf16",
    "b2 h6/3 q13 k20 padding5 bias_heads sinks_given slopes_given dropout0.9 fp16"};

TEST(GradientScoreLaws, ACorrectKernelPassesEveryLawUnderEveryModification) {
  for (const std::string& problem : modified) {
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      Case c = modified_case(problem);
      c.inputs.seed = seed;
      if (seed % 2 == 0) c.plan = {.query_tile = 16, .key_tile = 32};
      HostMemoryDevice device;
      attest::Run run(*find_kernel(c.kernel, Executor::cpu), c, device);
      const CaseVerdict verdict = verify_case(run, {.every_law = true});
      EXPECT_EQ(verdict.verdict, Verdict::passed)
          << problem << ' ' << seed << ": "
          << (verdict.failure ? describe(*verdict.failure, run.kernel()) : verdict.reason);
    }
  }
}

/// Lengths a key or a query around the tiles of bwd_simple, 16 to 64.
const std::vector<std::string> over_tiles{
    "b2 h2/1 q33 k31 d8 sinks_given dlse_given",
    "b3 h2/1 q17 k15 d8 lengths4 causal_bottom_right sinks_given padding5 dlse_given",
    "b1 h2/1 q33 k49 d8 slopes_given softcap3",
    "b1 h2/1 q49 k33 d8 window_top_left left20 right3 slopes_given sinks_given",
    "b2 h2/1 q33 k33 d8 bias_full dlse_given",
    "b3 h2/1 q17 k33 d8 bias_heads softcap3 causal_top_left",
    "b2 h2/1 q33 k17 d8 bias_entries slopes_given",
    "b3 h4/2 q17 k17 d8 bias_shared lengths3 dropout0.3 philox5",
    "b1 h2/1 q31 k49 d8 causal_top_left prefix9",
    "b2 h2/1 q49 k49 d8 documents6",
    "b1 h2/1 q33 k33 d8 causal_bottom_right documents9 prefix3 padding5",
    "b2 h2/1 q33 k31 d8 dropout0.5 philox7 offset2 dlse_given",
    "b2 h2/1 q33 k49 d8 lists4",
    "b2 h2/1 q49 k33 d8 lists9 listrows8 listkeys16 documents9 sinks_given"};

void expect_every_law_passed(const KernelInfo& kernel, const Problem& problem, const Plan& plan) {
  const auto device = make_device(Executor::simt);
  const Case c{.kernel = kernel.name, .problem = problem, .plan = plan, .inputs = {.seed = 11}};
  attest::Run run(kernel, c, *device);
  const CaseVerdict verdict = verify_case(run, {.every_law = true});
  EXPECT_EQ(verdict.verdict, Verdict::passed)
      << kernel.name << ' ' << to_string(problem) << ": "
      << (verdict.failure ? describe(*verdict.failure, kernel) : verdict.reason);
}

TEST(GradientScoreLaws, SimpleGradientsPassEveryLawUnderEveryModificationWhateverTheirTiles) {
  const KernelInfo& kernel = *find_kernel("bwd_simple", Executor::simt);
  for (const char* const type : {"fp32", "fp16", "bf16"}) {
    for (const std::string& text : over_tiles) {
      const Problem problem = problem_from_string("backward " + text + ' ' + type);
      expect_every_law_passed(kernel, problem, kernel.plans(problem).back());
    }
  }
}

TEST(GradientScoreLaws, GradientsOnHopperPassEveryLawUnderTheirModificationsWhateverTheirTiles) {
  const KernelInfo& kernel = *find_kernel("bwd_wgmma", Executor::simt);
  for (const char* const text :
       {"b2 h4/2 q65 k63 d8 causal_bottom_right prefix5 sinks_given slopes_given fp16",
        "b1 h2/1 q127 k65 d8 documents9 slopes_given softcap3 sinks_given bf16",
        "b3 h2/1 q65 k66 d8 lengths4 causal_top_left documents3 prefix3 padding5 fp16",
        "b2 h2/1 q65 k81 d136 causal_top_left documents6 prefix9 sinks_given bf16"}) {
    const Problem problem = problem_from_string(std::string("backward ") + text);
    const std::vector<Plan> plans = kernel.plans(problem);
    expect_every_law_passed(kernel, problem, plans.front());
    expect_every_law_passed(kernel, problem, plans.back());
  }
}

/// Moves an element of dK by one ulp.
void nudge(const BackwardArguments& a) {
  float& x = values_of(a.dk, key_shape(a.problem))[0];
  x = std::nextafter(x, 9.0F);
}

/// Moves all of dQ by more than its bound.
void move_dq(const BackwardArguments& a) {
  for (float& x : values_of(a.dq, query_shape(a.problem))) x += 0.01F;
}

TEST(GradientScoreLaws, SinksThatLeaveATraceWhereTheyAreNoneAreCaught) {
  expect_gradients_caught(
      "absent_sinks_are_minus_infinity",
      [](const BackwardArguments& a) {
        if (a.sinks != nullptr && std::isinf(a.sinks[0])) nudge(a);
      },
      modified_case(modified[9]));
}

TEST(GradientScoreLaws, AnErrorOfTheGradientOfASinkIsCaughtByItsBound) {
  for (const char* const law : {"dsinks_within_bound", "gradient_of_both_passes"}) {
    expect_gradients_caught(
        law, [](const BackwardArguments& a) { a.d_sinks[1] *= 1.001F; },
        modified_case(modified[9]));
  }
}

TEST(GradientScoreLaws, GradientsOfSinksAndBiasesThatDependOnGroupsAreCaughtByCopiedHeads) {
  const std::string law = "groups_equal_copied_heads";
  const auto is_grouped = [](const Problem& p) { return p.kv_heads < p.query_heads; };
  expect_gradients_caught(
      law,
      [&](const BackwardArguments& a) {
        if (is_grouped(a.problem)) a.d_sinks[1] = std::nextafter(a.d_sinks[1], 9.0F);
      },
      modified_case(modified[9]));
  const auto nudge_bias = [&](const BackwardArguments& a) {
    if (is_grouped(a.problem)) a.d_bias[1] = std::nextafter(a.d_bias[1], 9.0F);
  };
  expect_gradients_caught(law, nudge_bias, modified_case("b2 h4/2 q9 k20 bias_full"));
  expect_gradients_caught(law, nudge_bias, modified_case("b2 h4/2 q9 k20 bias_heads"));
  // Summed over heads, in what order is the kernel's.
  for (const char* const shared : {"bias_entries", "bias_shared"}) {
    const Case c = modified_case(std::string("b2 h4/2 q9 k20 ") + shared);
    EXPECT_EQ(verdict_of_gradients(law, nudge_bias, c), Verdict::passed) << shared;
    expect_gradients_caught(
        law,
        [&](const BackwardArguments& a) {
          if (is_grouped(a.problem)) a.d_bias[1] = 1.001F * a.d_bias[1] + 1e-4F;
        },
        c);
  }
}

TEST(GradientScoreLaws, AGradientOfASinkThatIsNoneIsCaught) {
  expect_gradients_caught(
      "absent_sinks_have_no_gradient",
      [](const BackwardArguments& a) {
        if (std::isinf(a.sinks[1])) a.d_sinks[1] = std::numeric_limits<float>::quiet_NaN();
      },
      modified_case(modified[10]));
}

TEST(GradientScoreLaws, ARowThatIsNotSummedForItsSinkIsCaughtByItsDLse) {
  expect_gradients_caught(
      "lse_gradient_weighs_keys", [](const BackwardArguments& a) { a.d_sinks[1] += 1.0F; },
      modified_case(modified[9]));
}

TEST(GradientScoreLaws, AnErrorOfTheGradientOfABiasIsCaughtByItsBound) {
  for (const char* const law : {"dbias_within_bound", "gradient_of_both_passes"}) {
    expect_gradients_caught(
        law, [](const BackwardArguments& a) { a.d_bias[1] = 1.001F * a.d_bias[1] + 1e-4F; },
        modified_case(modified[12]));
  }
}

TEST(GradientScoreLaws, AShareThatIsNotSummedForABiasIsCaughtByItsDLse) {
  expect_gradients_caught(
      "lse_gradient_weighs_keys", [](const BackwardArguments& a) { a.d_bias[3] += 1.0F; },
      modified_case(modified[15]));
}

TEST(GradientScoreLaws, ABiasThatHasAGradientThoughAllValuesAreOIsCaught) {
  expect_gradients_caught(
      "equal_values_leave_no_dscore", [](const BackwardArguments& a) { a.d_bias[3] += 1e-30F; },
      modified_case(modified[12]));
}

TEST(GradientScoreLaws, BiasesThatLeaveATraceWhereTheyAreZeroAreCaught) {
  expect_gradients_caught(
      "absent_bias_is_zero",
      [](const BackwardArguments& a) {
        if (a.bias != nullptr && a.bias[0] == 0 && a.bias[1] == 0) nudge(a);
      },
      modified_case(modified[12]));
}

TEST(GradientScoreLaws, ABiasThatIsSharedAndNotItsCopiesIsCaught) {
  expect_gradients_caught(
      "shared_bias_equals_copies",
      [](const BackwardArguments& a) {
        if (a.bias != nullptr && a.problem.bias == Bias::full) nudge(a);
      },
      modified_case(modified[14]));
}

TEST(GradientScoreLaws, ABiasThatIsNotAddedAsSlopesAreIsCaught) {
  expect_gradients_caught(
      "slopes_equal_a_bias",
      [](const BackwardArguments& a) {
        if (a.bias != nullptr) move_dq(a);
      },
      modified_case(modified[7]));
}

TEST(GradientScoreLaws, ABiasThatDoesNotHideIsCaught) {
  expect_gradients_caught(
      "bias_hides_as_padding_and_lists",
      [](const BackwardArguments& a) {
        if (a.bias != nullptr) move_dq(a);
      },
      modified_case(modified[3]));
}

TEST(GradientScoreLaws, ADropoutOfZeroThatIsNotNoneIsCaught) {
  expect_gradients_caught(
      "dropout_of_zero_is_none",
      [](const BackwardArguments& a) {
        if (a.problem.dropout == 0 && a.problem.dropout_seed != 0) nudge(a);
      },
      modified_case(modified[16]));
}

TEST(GradientScoreLaws, ADeltaThatFallsWithItsWeightIsCaught) {
  expect_gradients_caught(
      "dropout_of_one_is_values_of_zero",
      [](const BackwardArguments& a) {
        if (a.problem.dropout < 1) return;
        for (float& x : values_of(a.dq, query_shape(a.problem))) x = 0;
      },
      modified_case(modified[16]));
}

TEST(GradientScoreLaws, SlopesThatLeaveATraceWhereTheyAreZeroAreCaught) {
  expect_gradients_caught(
      "absent_slopes_are_zero",
      [](const BackwardArguments& a) {
        if (a.slopes != nullptr && a.slopes[0] == 0) nudge(a);
      },
      modified_case(modified[7]));
}

TEST(GradientScoreLaws, OneDocumentThatIsNotNoneIsCaught) {
  expect_gradients_caught(
      "one_document_is_none",
      [](const BackwardArguments& a) {
        if (a.key_documents == nullptr) return;
        const std::int32_t* const first = a.key_documents;
        if (std::all_of(first, first + a.problem.key_len, [&](auto x) { return x == *first; })) {
          nudge(a);
        }
      },
      modified_case(modified[1]));
}

TEST(GradientScoreLaws, AnInfluenceOfAnotherDocumentOnDQIsCaught) {
  expect_gradients_caught(
      "document_equals_itself_alone",
      [](const BackwardArguments& a) {
        if (a.key_documents != nullptr) move_dq(a);
      },
      modified_case(modified[1]));
}

TEST(GradientScoreLaws, PrefixesWithoutKeysThatAreNotNoneAreCaught) {
  expect_gradients_caught(
      "empty_prefix_is_none",
      [](const BackwardArguments& a) {
        if (a.prefix_lengths != nullptr && a.prefix_lengths[0] == 0) nudge(a);
      },
      modified_case(modified[0]));
}

TEST(GradientScoreLaws, APrefixOfAllKeysThatIsNotNoMaskIsCaught) {
  expect_gradients_caught(
      "full_prefix_is_no_mask",
      [](const BackwardArguments& a) {
        if (a.prefix_lengths != nullptr) move_dq(a);
      },
      modified_case(modified[0]));
}

TEST(GradientScoreLaws, ListsOfAllKeysThatAreNotNoneAreCaught) {
  expect_gradients_caught(
      "full_lists_are_none",
      [](const BackwardArguments& a) {
        if (a.key_lists.is_used()) move_dq(a);
      },
      modified_case(modified[3]));
}

TEST(GradientScoreLaws, AnInfluenceOfAKeyThatNoListNamesOnDQIsCaught) {
  expect_gradients_caught(
      "listed_keys_are_all_there_is",
      [](const BackwardArguments& a) {
        if (a.key_lists.is_used()) move_dq(a);
      },
      modified_case(modified[3]));
}

}  // namespace
}  // namespace attest
