// Laws about ranks, each with a kernel that is spoilt in the one way the law is for.
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

Case case_of_ranks() {
  return {.kernel = "n3_ring",
          .problem = {.query_heads = 2,
                      .query_len = 12,
                      .key_len = 24,
                      .head_dim = 8,
                      .scale = default_scale(8)},
          .plan = {.key_tile = 3,
                   .normalise = Normalise::at_the_end,
                   .ranks = 3,
                   .distribution = Distribution::zigzag},
          .inputs = {.seed = 5}};
}

TEST(RankLaws, AnErrorOfSeveralRanksAloneIsCaught) {
  expect_caught(
      "ranks_agree_with_one",
      [](const ForwardArguments& a) {
        if (a.plan.ranks > 1) o_row(a, 0, 1, 5)[3] += 1e-2F;
      },
      case_of_ranks());
}

TEST(RankLaws, AnErrorOfOneDistributionAloneIsCaught) {
  for (const std::int64_t distribution : {Distribution::zigzag, Distribution::stripe}) {
    Case c = case_of_ranks();
    c.plan.distribution = distribution;
    expect_caught(
        "distribution_is_a_permutation",
        [](const ForwardArguments& a) {
          if (a.plan.distribution != Distribution::contiguous) o_row(a, 0, 1, 5)[3] += 1e-2F;
        },
        c);
  }
}

// Each rank has as many tokens only where the lengths can be shared out evenly.
TEST(RankLaws, OfOtherLengthsPermutationsSayNothing) {
  Case c = case_of_ranks();
  c.problem.key_len = 25;
  EXPECT_NE(verdict_of("distribution_is_a_permutation", c,
                       [](const ForwardArguments& a) { o_row(a, 0, 1, 5)[3] += 1; }),
            Verdict::failed);
}

}  // namespace
}  // namespace attest
