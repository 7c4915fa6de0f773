// The laws of choices of keys, each against a saboteur.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/inputs/input_family.hpp"
#include "core/operations/select_arguments.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/laws/spoilt_kernel_test.hpp"

namespace attest {
namespace select_laws {

using Sabotage = std::function<void(const SelectArguments&)>;

Case case_of(const std::string& family, double magnitude = 1) {
  return {.kernel = "select_rows",
          .problem = {.operation = &select_operation,
                      .batch = 2,
                      .query_heads = 4,
                      .kv_heads = 2,
                      .query_len = 5,
                      .key_len = 70,
                      .head_dim = 16,
                      .scale = 0.25F,
                      .top_k = 9},
          .inputs = {.family = family, .seed = 11, .magnitude = magnitude}};
}

void expect_caught(const std::string& law, const Case& c, const Sabotage& sabotage) {
  expect_law_catches<SelectArguments>(law, c, sabotage);
}

Verdict verdict_of(const std::string& law, const Case& c, const Sabotage& sabotage) {
  return verdict_of_spoilt<SelectArguments>(law, c, sabotage);
}

/// The list of the last query.
std::int32_t* last_list(const SelectArguments& a) {
  const Problem& p = a.problem;
  return a.keys + (p.batch * p.query_len - 1) * p.top_k;
}
float* last_scores(const SelectArguments& a) {
  return a.scores + (last_list(a) - a.keys);
}

/// A key of entry 1 that the last list does not name.
std::int32_t key_left_out(const SelectArguments& a) {
  const std::int32_t* const list = last_list(a);
  std::int32_t key = 0;
  while (std::count(list, list + a.problem.top_k, key) > 0) ++key;
  return key;
}

TEST(SelectLaws, AListThatIsNoSetOfVisibleKeysIsCaught) {
  const Case c = case_of("normal");
  expect_caught("selection_is_a_set", c,
                [](const SelectArguments& a) { last_list(a)[3] = last_list(a)[5]; });
  expect_caught("selection_is_a_set", c, [](const SelectArguments& a) { last_list(a)[3] = 70; });
  expect_caught("selection_is_a_set", c, [](const SelectArguments& a) { last_list(a)[3] = -2; });
  const Sabotage one_less = [](const SelectArguments& a) {
    --a.counts[a.problem.batch * a.problem.query_len - 1];
  };
  expect_caught("selection_is_a_set", c, one_less);
  expect_caught("counts_within_bound", c, one_less);
  Case causal = c;
  causal.problem.mask = Mask::causal_top_left;  // query 4 sees keys 0 to 4
  expect_caught("selection_is_a_set", causal,
                [](const SelectArguments& a) { last_list(a)[0] = 5; });
  expect_caught("selection_is_a_set", causal,
                [](const SelectArguments& a) { last_list(a)[8] = 4; });
}

TEST(SelectLaws, AKeyThatIsSurelySmallerThanOneLeftOutIsCaught) {
  const Sabotage other_key = [](const SelectArguments& a) { last_list(a)[8] = key_left_out(a); };
  for (const double sign : {1.0, -1.0}) {
    const Case c = case_of("score_ranks", sign);
    expect_caught("selection_is_reachable", c, other_key);
    expect_caught("within_bound", c, other_key);
  }
}

TEST(SelectLaws, OfKeysOfOneScoreAnyWillDo) {
  Case c = case_of("score_ties", 0);
  c.problem.top_k = 40;  // two thirds of the keys tie for it
  int exchanged = 0;
  const Sabotage other_key = [&](const SelectArguments& a) {
    const auto score_of = [&](std::int64_t key) {
      return static_cast<const float*>(a.k)[a.k_strides.offset(1, 0, key)];
    };
    std::int32_t* const list = last_list(a);
    for (std::int32_t key = 0; key < a.problem.key_len; ++key) {
      if (score_of(key) != score_of(list[39]) || std::count(list, list + 40, key) > 0) continue;
      list[39] = key;
      ++exchanged;
      return;
    }
  };
  for (const char* const law : {"within_bound", "selection_is_a_set", "selection_is_reachable",
                                "scores_belong_to_keys", "moved_keys_move_the_choice"}) {
    EXPECT_EQ(verdict_of(law, c, other_key), Verdict::passed) << law;
  }
  EXPECT_GT(exchanged, 0);
}

TEST(SelectLaws, AScoreOfAnotherKeyIsCaught) {
  const Case c = case_of("normal");
  const Sabotage exchange = [](const SelectArguments& a) {
    std::swap(last_scores(a)[0], last_scores(a)[1]);
  };
  expect_caught("scores_belong_to_keys", c, exchange);
  expect_caught("scores_within_bound", c, exchange);
}

TEST(SelectLaws, AKeyOfNanThatIsPassedOverIsCaught) {
  Case c = case_of("scores_not_finite");
  c.problem.top_k = 1;
  const Sabotage finite = [](const SelectArguments& a) {
    std::int32_t& key = *last_list(a);
    const auto is_finite = [&](std::int64_t candidate) {
      for (std::int64_t h = 0; h < a.problem.kv_heads; ++h) {
        for (std::int64_t d = 0; d < a.problem.head_dim; ++d) {
          const auto at = a.k_strides.offset(1, h, candidate) + d;
          if (!std::isfinite(static_cast<const float*>(a.k)[at])) return false;
        }
      }
      return true;
    };
    key = 0;
    while (!is_finite(key)) ++key;
  };
  expect_caught("selection_is_reachable", c, finite);
}

TEST(SelectLaws, AChoiceThatHangsOnWhatItMustNotIsCaught) {
  Case c = case_of("score_ranks");
  // The least key of the last list, by the value of something else, gives way to another.
  const auto on = [](const auto& is_so) {
    return [=](const SelectArguments& a) {
      if (is_so(a)) last_list(a)[a.problem.top_k - 1] = key_left_out(a);
    };
  };
  expect_caught("scaled_weights_choose_alike", c, on([](const SelectArguments& a) {
                  return a.weights[a.weights_strides.offset(1, 0, 4)] != 1.0F;
                }));
  expect_caught("keys_of_zeros_are_not_chosen", c,
                on([](const SelectArguments& a) { return a.problem.key_len > 70; }));
  const float first = make_inputs(c.problem, c.inputs)[selecting::k].at(0, 0, 0, 0);
  expect_caught("moved_keys_move_the_choice", c, on([first](const SelectArguments& a) {
                  return *static_cast<const float*>(a.k) != first;
                }));
  const Case of_heads = case_of("normal");
  const float head = make_inputs(of_heads.problem, of_heads.inputs)[selecting::q].at(0, 0, 0, 0);
  expect_caught("heads_may_change_places", of_heads, on([head](const SelectArguments& a) {
                  return *static_cast<const float*>(a.q) != head;
                }));
  c.problem.mask = Mask::causal_bottom_right;
  c.problem.query_len = 6;
  expect_caught("hidden_keys_irrelevant", c, [](const SelectArguments& a) {
    const float last = static_cast<const float*>(a.k)[a.k_strides.offset(0, 0, 69)];
    if (std::isnan(last)) std::swap(a.scores[0], a.scores[1]);
  });
}

TEST(SelectLaws, ARightKernelPassesThemAll) {
  CampaignOptions options;
  options.cases_per_kernel = 50;
  options.laws.every_law = true;
  options.generator.max_len = 90;
  const KernelResult result =
      run_campaign({find_kernel("select_rows", Executor::cpu)}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::passed)
      << (result.failure ? describe(*result.failure, *result.kernel) : result.vacuous_reason);
  for (const char* const law :
       {"selection_is_a_set", "selection_is_reachable", "scores_belong_to_keys", "within_bound",
        "counts_within_bound", "scores_within_bound", "heads_may_change_places",
        "scaled_weights_choose_alike", "keys_of_zeros_are_not_chosen", "moved_keys_move_the_choice",
        "hidden_keys_irrelevant", "equal_masks_agree", "lengths_equal_single_entries",
        "entry_gaps_irrelevant", "more_mates_irrelevant"}) {
    EXPECT_TRUE(result.checks.contains(law)) << law;
  }
  EXPECT_GT(result.certified_rows, 0);
}

}  // namespace select_laws
}  // namespace attest
