#include "gpu/model/rank_model.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/attention/distribution.hpp"
#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/gradient_tensors.hpp"
#include "gpu/model/link_table.hpp"

namespace attest {
namespace {

constexpr std::int64_t contiguous = Distribution::contiguous, zigzag = Distribution::zigzag,
                       stripe = Distribution::stripe;
/// Powers of two, so that times of small problems are exact.
constexpr RankRates exact_rates{.flops_per_s = 0x1p40, .link_bytes_per_s = 0x1p30};

Problem self_attention(std::int64_t length, Mask mask) {
  return {.batch = 2,
          .query_heads = 8,
          .kv_heads = 2,
          .query_len = length,
          .key_len = length,
          .head_dim = 64,
          .mask = mask,
          .element_type = ElementType::bf16};
}

std::int64_t any_distribution() {
  return *rc::gen::inRange<std::int64_t>(contiguous, stripe + 1);
}

/// Any mask, lengths that P divides or not, also fewer tokens than ranks.
Problem any_problem() {
  Problem p = self_attention(*rc::gen::inRange<std::int64_t>(0, 40), Mask::none);
  p.key_len = *rc::gen::inRange<std::int64_t>(0, 40);
  p.mask = *rc::gen::elementOf(std::vector<Mask>(all_masks().begin(), all_masks().end()));
  if (is_window(p.mask)) {
    p.window = {*rc::gen::inRange<std::int64_t>(-1, 12), *rc::gen::inRange<std::int64_t>(-1, 12)};
  }
  return p;
}

/// A problem of that many tokens a rank that all ranks share alike.
Problem long_problem(std::int64_t ranks, Mask mask) {
  return self_attention(2 * ranks * *rc::gen::inRange<std::int64_t>(1, 4096), mask);
}

double bytes_of_a_part(const Problem& p, std::int64_t ranks) {
  return static_cast<double>(p.batch * p.kv_heads * p.key_len / ranks *
                             (p.head_dim + p.output_dim()) * 2);
}

RC_GTEST_PROP(RankModel, PairsOfTwoRanksAreThoseThatSeeEachOther, ()) {
  const Problem p = any_problem();
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 6),
                     distribution = any_distribution();
  for (std::int64_t of_queries = 0; of_queries < ranks; ++of_queries) {
    for (std::int64_t of_keys = 0; of_keys < ranks; ++of_keys) {
      std::int64_t pairs = 0;
      for (const auto query : tokens_of_rank(distribution, p.query_len, ranks, of_queries)) {
        for (const auto key : tokens_of_rank(distribution, p.key_len, ranks, of_keys)) {
          pairs += p.sees(0, query, key);
        }
      }
      RC_ASSERT(visible_pairs_of(p, ranks, distribution, of_queries, of_keys) ==
                static_cast<double>(pairs));
    }
  }
}

RC_GTEST_PROP(RankModel, ComputingIsNeverShorterThanTheWorkDividedAndTheWorkIsThatOfOneGpu, ()) {
  const Problem p = any_problem();
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 9);
  const RankTimes ring = ring_times(p, ranks, any_distribution(), exact_rates);
  RC_ASSERT(ring.alone_s == forward_flops(p) / exact_rates.flops_per_s);
  RC_ASSERT(ring.computing_s() * static_cast<double>(ranks) >= ring.alone_s);
}

RC_GTEST_PROP(RankModel, AGroupOfOneLosesNothingAndSendsNothing, ()) {
  const Problem p = any_problem();
  for (const RankTimes& one : {ring_times(p, 1, any_distribution(), exact_rates),
                               ulysses_times(p, 1, any_distribution(), exact_rates)}) {
    RC_ASSERT(one.efficiency() == 1);
    RC_ASSERT(one.sent_bytes == std::vector<double>{0});
  }
}

RC_GTEST_PROP(RankModel, ALinkTwiceAsFastNeverMakesItSlower, ()) {
  const Problem p = any_problem();
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 9),
                     distribution = any_distribution();
  RankRates faster = exact_rates;
  faster.link_bytes_per_s *= 2;
  RC_ASSERT(ring_times(p, ranks, distribution, faster).time_s() <=
            ring_times(p, ranks, distribution, exact_rates).time_s());
  RC_ASSERT(ulysses_times(p, ranks, distribution, faster).time_s() <=
            ulysses_times(p, ranks, distribution, exact_rates).time_s());
}

RC_GTEST_PROP(RankModel, TheTimeLiesBetweenTheLongerOfBothAndTheirSum, ()) {
  const Problem p = any_problem();
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 9);
  const RankTimes ring = ring_times(p, ranks, any_distribution(), exact_rates);
  RC_ASSERT(ring.time_s() >= std::max(ring.computing_s(), ring.exchange_s()));
  RC_ASSERT(ring.time_s() <= ring.computing_s() + ring.exchange_s());
  RC_ASSERT(ring.efficiency() <= ring.balance());
  RC_ASSERT(ring.efficiency_without_overlap() <= ring.efficiency());
}

RC_GTEST_PROP(RankModel, EfficiencyNeverFallsBelowComputingOverExchange, ()) {
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(2, 65);
  const Problem p = long_problem(ranks, Mask::none);
  const RankTimes ring = ring_times(p, ranks, contiguous, exact_rates);
  const double limit = std::min(1.0, ring.steps[0].computing_s / ring.steps[0].exchange_s);
  // Both sides are rounded a few times.
  RC_ASSERT(ring.efficiency() >= limit * (1 - 0x1p-40));
}

RC_GTEST_PROP(RankModel, ZigzagIsNeverSlowerThanContiguousUnderACausalMask, ()) {
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 33);
  Problem p = long_problem(ranks, Mask::causal_top_left);
  const auto time = [&](std::int64_t distribution) {
    return ring_times(p, ranks, distribution, exact_rates).time_s();
  };
  RC_ASSERT(time(zigzag) <= time(contiguous));
  RC_ASSERT(time(stripe) <= time(contiguous));
}

TEST(RankModel, UnderACausalMaskContiguousRanksWaitForTheLastAndZigzagRanksForNobody) {
  constexpr std::int64_t ranks = 8, part = 512;
  const Problem p = self_attention(ranks * part, Mask::causal_top_left);
  // The last rank sees every pair of every step but half of those of its own keys.
  const double all = ranks * part * (ranks * part + 1) / 2.0;
  const double last = (ranks - 1) * part * part + part * (part + 1) / 2.0;
  EXPECT_EQ(ring_times(p, ranks, contiguous, exact_rates).balance(), all / (ranks * last));
  // A step of own keys has a diagonal more, half of which is seen: part / 2 pairs.
  const double even = ranks * part * part / 2.0 + part / 2.0;
  EXPECT_EQ(ring_times(p, ranks, zigzag, exact_rates).balance(), all / (ranks * even));
}

TEST(RankModel, AtTheBreakEvenComputingTakesAsLongAsTheExchange) {
  // 2^40 / 2^30 times 2 kv heads of 8: 256 queries, or 512 where half of the pairs are seen.
  for (const auto& [mask, distribution, queries] : {std::tuple{Mask::none, contiguous, 256},
                                                    {Mask::none, stripe, 256},
                                                    {Mask::causal_top_left, contiguous, 256},
                                                    {Mask::causal_top_left, zigzag, 512}}) {
    for (const std::int64_t ranks : {2, 8, 64}) {
      const Problem p = self_attention(ranks * queries, mask);
      EXPECT_EQ(break_even_queries(p, distribution, exact_rates), queries);
      const RankTimes ring = ring_times(p, ranks, distribution, exact_rates);
      EXPECT_EQ(ring.steps.back().computing_s, ring.steps.front().exchange_s) << ranks;
      const Problem longer = self_attention(2 * ranks * queries, mask);
      const RankTimes hidden = ring_times(longer, ranks, distribution, exact_rates);
      EXPECT_EQ(hidden.steps.back().computing_s, 2 * hidden.steps.front().exchange_s) << ranks;
    }
  }
}

TEST(RankModel, TheBreakEvenIsNotKnownWhereStepsDiffer) {
  Problem p = self_attention(1024, Mask::window_top_left);
  p.window = {128, 0};
  EXPECT_EQ(break_even_queries(p, zigzag, exact_rates), std::nullopt);
  Problem cross = self_attention(1024, Mask::causal_bottom_right);
  cross.key_len = 2048;
  EXPECT_EQ(break_even_queries(cross, zigzag, exact_rates), std::nullopt);
}

RC_GTEST_PROP(RankModel, ARankOfARingSendsAllPartsOfKAndVButOne, ()) {
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(2, 65);
  const Problem p = long_problem(ranks, Mask::none);
  const RankTimes ring = ring_times(p, ranks, any_distribution(), exact_rates);
  const double sent = static_cast<double>(ranks - 1) * bytes_of_a_part(p, ranks);
  RC_ASSERT(ring.sent_bytes == std::vector<double>(static_cast<std::size_t>(ranks), sent));
}

Problem gradients_of(Problem problem) {
  problem.operation = &backward_operation;
  return problem;
}

RC_GTEST_PROP(RankModel, OfGradientsARankSendsPartsOfDKAndDVToo, ()) {
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(2, 65);
  const Problem p = gradients_of(long_problem(ranks, Mask::none));
  const RankTimes ring = ring_times(p, ranks, any_distribution(), exact_rates);
  const double sent = 2 * static_cast<double>(ranks - 1) * bytes_of_a_part(p, ranks);
  RC_ASSERT(ring.sent_bytes == std::vector<double>(static_cast<std::size_t>(ranks), sent));
  // All of it is timed, and what the last of others' keys leave hides behind half of the own ones.
  RC_ASSERT(ring.exchange_s() == sent / exact_rates.link_bytes_per_s);
  RC_ASSERT(ring.steps.back().computing_s == ring.steps.front().computing_s);
  RC_ASSERT(2 * ring.steps.back().computing_s == ring.steps[1].computing_s);
  RC_ASSERT(ring.steps.back().exchange_s ==
            bytes_of_a_part(p, ranks) / exact_rates.link_bytes_per_s);
}

RC_GTEST_PROP(RankModel, GradientsComputeFiveProductsInsteadOfTwo, ()) {
  const Problem p = any_problem();
  const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 9),
                     distribution = any_distribution();
  const RankTimes forward = ring_times(p, ranks, distribution, exact_rates);
  const RankTimes backward = ring_times(gradients_of(p), ranks, distribution, exact_rates);
  RC_ASSERT(backward.alone_s == product_flops(p, 3, 2) / exact_rates.flops_per_s);
  RC_ASSERT(backward.computing_s() == 2.5 * forward.computing_s());
  RC_ASSERT(backward.exchange_s() == 2 * forward.exchange_s());
}

TEST(RankModel, TheExchangeOfGradientsHidesFromFourFifthsOfTheQueriesOn) {
  const Problem p = self_attention(4096, Mask::causal_top_left);
  for (const std::int64_t distribution : {contiguous, zigzag}) {
    EXPECT_DOUBLE_EQ(break_even_queries(gradients_of(p), distribution, exact_rates).value(),
                     0.8 * break_even_queries(p, distribution, exact_rates).value());
  }
}

TEST(RankModel, UlyssesOfGradientsMovesOAndItsGradientBesidesAndAllThreeGradientsBack) {
  const Problem p = self_attention(4096, Mask::none);  // 2 entries, 8/2 heads of 64 columns
  // Half of the tokens of half of the heads, each of 128 bytes; an LSE has 4.
  const double queries = 2 * 4 * 2048.0, keys = 2 * 1 * 2048.0;
  EXPECT_EQ(ulysses_times(p, 2, contiguous, exact_rates).sent_bytes[0],
            queries * (128 + 128 + 4) + keys * 256);
  EXPECT_EQ(ulysses_times(gradients_of(p), 2, contiguous, exact_rates).sent_bytes[0],
            queries * (3 * 128 + 4 + 128) + keys * 2 * 256);
}

TEST(RankModel, UlyssesIsLimitedByTheKvHeads) {
  const Problem p = self_attention(4096, Mask::none);
  constexpr RankRates free_link{.flops_per_s = 0x1p40, .link_bytes_per_s = 0x1p200};
  EXPECT_EQ(ulysses_times(p, 2, contiguous, free_link).balance(), 1);
  EXPECT_EQ(ulysses_times(p, 8, contiguous, free_link).balance(), 2 / 8.0);
}

TEST(RankModel, AProblemWithoutKeysOrQueriesTakesNoTime) {
  EXPECT_EQ(ring_times(self_attention(0, Mask::none), 4, zigzag, exact_rates).time_s(), 0);
  EXPECT_EQ(ring_times(self_attention(0, Mask::none), 4, zigzag, exact_rates).efficiency(), 1);
}

TEST(RankModel, ExponentialsLimitTheRateOfNarrowHeads) {
  const GpuModel& gpu = gpu_model_from_name("h200");
  Problem p = self_attention(1024, Mask::none);
  EXPECT_EQ(attention_flops_per_s(gpu, p), gpu.fp16_flops);
  p.head_dim = 32;
  EXPECT_EQ(attention_flops_per_s(gpu, p), gpu.ex2_per_s() * 128);
}

TEST(LinkTable, EveryLinkIsFoundByItsNameReachesNoMoreThanItHasAndSaysWhereItIsFrom) {
  for (const LinkModel& link : all_link_models()) {
    EXPECT_EQ(&link_model_from_name(link.name), &link);
    EXPECT_LE(link.reached_bytes_per_s, link.bytes_per_s) << link.name;
    EXPECT_GT(link.reached_bytes_per_s, 0) << link.name;
    EXPECT_FALSE(link.source.empty()) << link.name;
  }
  EXPECT_THROW((void)link_model_from_name("nvlink9"), InvalidInput);
}

TEST(LinkTable, AGroupPastItsHostIsAsFastAsTheSlowestLinkOfItsRing) {
  for (const GpuModel& gpu : all_gpu_models()) {
    const LinkModel& own = slowest_link(gpu, 2);
    EXPECT_EQ(own.name, gpu.link);
    EXPECT_LE(slowest_link(gpu, 1024).reached_bytes_per_s, own.reached_bytes_per_s) << gpu.name;
  }
  EXPECT_EQ(slowest_link(gpu_model_from_name("h200"), 8).name, "nvlink4");
  EXPECT_EQ(slowest_link(gpu_model_from_name("h200"), 9).name, "ndr");
}

}  // namespace
}  // namespace attest
