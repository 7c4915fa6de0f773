#include "verify/campaign/kernel_result.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/json.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/claimed.hpp"
#include "verify/cases/generators.hpp"

namespace attest {
namespace {

const KernelInfo& subject() {
  return *find_kernel("o5_deferred", Executor::cpu);
}

/// A campaign's result with as many drawn cases of each kind.
KernelResult result_of(std::int64_t passed, std::int64_t vacuous, std::int64_t given_up) {
  KernelResult result;
  result.kernel = &subject();
  const Case c = *draw_case(subject(), {}, 1, 0);
  for (std::int64_t i = 0; i < passed + vacuous; ++i) {
    CaseAnswer answer;
    answer.verdict.verdict = i < passed ? Verdict::passed : Verdict::vacuous;
    answer.verdict.reason = i < passed ? "" : "a score can overflow";
    answer.verdict.checked_laws = {"within_bound"};
    result.add(c, answer, i);
    ++result.drawn;
  }
  for (std::int64_t i = 0; i < given_up; ++i) {
    ++result.given_up;
    result.drawn += draw_attempts;
    for (std::int64_t attempt = 0; attempt < draw_attempts; ++attempt) {
      result.refusals.add("takes only multiples of 64");
    }
  }
  return result;
}

KernelResult failed_result() {
  KernelResult result = result_of(9, 0, 0);
  CaseAnswer answer;
  answer.verdict.verdict = Verdict::failed;
  answer.verdict.failure = Failure{.law = "within_bound", .the_case = *result.example};
  result.add(*result.example, answer, 9);
  return result;
}

TEST(KernelResult, APassTakesHalfOfTheCasesAskedForDecided) {
  EXPECT_EQ(result_of(10, 0, 0).verdict(), Verdict::passed);
  EXPECT_EQ(result_of(5, 0, 5).verdict(), Verdict::passed);
  EXPECT_EQ(result_of(4, 0, 5).verdict(), Verdict::inconclusive);
  EXPECT_EQ(result_of(5, 5, 0).verdict(), Verdict::passed);
  EXPECT_EQ(result_of(5, 4, 2).verdict(), Verdict::inconclusive);
  EXPECT_EQ(result_of(0, 10, 0).verdict(), Verdict::inconclusive);
  EXPECT_EQ(result_of(0, 0, 10).verdict(), Verdict::inconclusive);
  EXPECT_EQ(result_of(0, 0, 0).verdict(), Verdict::inconclusive) << "nothing was asked";
}

TEST(KernelResult, WhatNoLawWasAskedOfIsNoPassAndDoesNotCountAgainstOne) {
  const auto with_unchecked = [](KernelResult result) {
    for (std::int64_t i = 100; i < 110; ++i) result.add(*result.example, CaseAnswer{}, i);
    return result;
  };
  EXPECT_EQ(with_unchecked(result_of(3, 2, 0)).verdict(), Verdict::passed);
  EXPECT_EQ(with_unchecked(result_of(1, 4, 0)).verdict(), Verdict::inconclusive);
  KernelResult none = result_of(1, 0, 0);
  const Case c = *none.example;
  none = result_of(0, 0, 0);
  for (std::int64_t i = 0; i < 4; ++i) none.add(c, CaseAnswer{}, i);
  EXPECT_EQ(none.verdict(), Verdict::inconclusive);
  EXPECT_EQ(none.unchecked, 4);
  EXPECT_EQ(shortfalls_of(none)[0],
            "inconclusive: no law that was asked for applied to any of its 4 cases");
}

TEST(KernelResult, PastCounterexamplesDoNotMakeUpForDrawnCases) {
  KernelResult result = result_of(1, 0, 9);
  CaseAnswer answer;
  for (std::int64_t i = -20; i < 0; ++i) result.add(*result.example, answer, i);
  EXPECT_EQ(result.cases, 21);
  EXPECT_EQ(result.asked(), 10);
  EXPECT_EQ(result.verdict(), Verdict::inconclusive);
}

TEST(KernelResult, AFailureWinsOverTooFewCasesAndThoseOverAPass) {
  const KernelResult passed = result_of(10, 0, 0), open = result_of(1, 0, 9);
  EXPECT_EQ(campaign_verdict({passed, passed}), Verdict::passed);
  EXPECT_EQ(campaign_verdict({passed, open, passed}), Verdict::inconclusive);
  EXPECT_EQ(campaign_verdict({open, failed_result()}), Verdict::failed);
  EXPECT_EQ(campaign_verdict({failed_result(), open}), Verdict::failed);
  KernelResult survived = result_of(10, 0, 0);
  survived.kernel = find_kernel("o1_unshifted", Executor::cpu);
  EXPECT_EQ(campaign_verdict({passed, survived}), Verdict::failed)
      << "a negative control that lives";
}

TEST(KernelResult, TheExampleIsTheFirstDrawnCaseThatIsNotVacuousInWhateverOrderTheyCome) {
  std::vector<std::pair<std::int64_t, Verdict>> answers{{-3, Verdict::passed},
                                                        {1, Verdict::vacuous},
                                                        {4, Verdict::passed},
                                                        {2, Verdict::passed},
                                                        {6, Verdict::passed}};
  for (int turn = 0; turn < 5; ++turn) {
    KernelResult result;
    result.kernel = &subject();
    for (const auto& [index, verdict] : answers) {
      Case c = *draw_case(subject(), {}, 1, 0);
      c.problem.batch = 10 + index;
      CaseAnswer answer;
      answer.verdict.verdict = verdict;
      answer.verdict.checked_laws = {"within_bound"};
      result.add(c, answer, index);
    }
    ASSERT_TRUE(result.example);
    EXPECT_EQ(result.example->problem.batch, 12);
    std::ranges::rotate(answers, answers.begin() + 1);
  }
}

TEST(KernelResult, AVacuousCaseShowsNoClaim) {
  EXPECT_TRUE(result_of(0, 3, 0).facts.empty());
  const KernelResult result = result_of(1, 3, 0);
  EXPECT_EQ(result.facts, facts_of(*result.example));
}

TEST(KernelResult, LawsOfWhichAKernelCannotBeAskedAreCountedAndSaidAndAreNoChecks) {
  KernelResult result = result_of(9, 0, 0);
  CaseAnswer answer;
  answer.verdict.checked_laws = {"within_bound"};
  answer.verdict.declined = {"graph_may_be_replayed: cannot be captured: cudaMalloc"};
  result.add(*result.example, answer, 9);
  EXPECT_EQ(result.verdict(), Verdict::passed);
  EXPECT_EQ(result.decided, 10);
  EXPECT_FALSE(result.checks.contains("graph_may_be_replayed"));
  EXPECT_EQ(shortfalls_of(result),
            std::vector<std::string>{"1 time a law could not be asked (\"graph_may_be_replayed: "
                                     "cannot be captured: cudaMalloc\")"});
  EXPECT_EQ(kernel_result_from_json(parse_json(to_json(result).dump())).declined, result.declined);
}

TEST(KernelResult, RefusalsAreNamedWithTheirCountsTheMostFrequentFirst) {
  KernelResult result = result_of(9, 0, 1);
  for (int i = 0; i < 3; ++i) result.refusals.add("takes no CSR");
  for (const char* const sentence : {"takes no pages", "no bf16", "no fp16", "no window"}) {
    result.refusals.add(sentence);
  }
  EXPECT_NE(shortfalls_of(result)[0].find("57 refused (50 of them: \"takes only multiples of 64\", "
                                          "3: \"takes no CSR\", 1: \"no bf16\", 1: \"no fp16\", "
                                          "and 2 others)"),
            std::string::npos)
      << shortfalls_of(result)[0];
}

TEST(KernelResult, IsKeptOnDisk) {
  for (KernelResult result : {result_of(6, 2, 3), failed_result()}) {
    result.never_judged = {"groups above 8"};
    const KernelResult read = kernel_result_from_json(parse_json(to_json(result).dump()));
    EXPECT_EQ(to_json(read), to_json(result));
    EXPECT_EQ(read.decided, result.decided);
    EXPECT_EQ(read.drawn, result.drawn);
    EXPECT_EQ(read.refusals, result.refusals);
    EXPECT_EQ(read.given_up, result.given_up);
    EXPECT_EQ(read.facts, result.facts);
    EXPECT_EQ(read.example, result.example);
    EXPECT_EQ(read.never_judged, result.never_judged);
  }
}

TEST(Shortfalls, OfAResultWithoutAnyAreNone) {
  EXPECT_TRUE(shortfalls_of(result_of(10, 0, 0)).empty());
  EXPECT_TRUE(shortfalls_of(failed_result()).empty());
}

TEST(Shortfalls, CountWhatWasDrawnRefusedAndJudgedInTheKernelsWords) {
  const std::vector<std::string> lines = shortfalls_of(result_of(4, 1, 6));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            "305 drawn, 300 refused (\"takes only multiples of 64\"), 5 judged; 6 of 11 cases "
            "given up after 50 attempts each");
  EXPECT_EQ(lines[1],
            "inconclusive: 4 of 11 cases judged and not vacuous, a pass takes half (vacuous: a "
            "score can overflow)");
}

TEST(Shortfalls, AShareWithoutCasesIsNoPass) {
  const std::vector<std::string> lines = shortfalls_of(result_of(0, 0, 0));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("no case was asked for"), std::string::npos) << lines[0];
}

TEST(Shortfalls, SayOfWhichSentenceTheyShowHowOftenItWasSaid) {
  KernelResult result = result_of(4, 0, 1);
  result.refusals.add("o5_deferred: no bf16");
  EXPECT_NE(shortfalls_of(result)[0].find("51 refused (50 of them: \"takes only"),
            std::string::npos)
      << shortfalls_of(result)[0];
}

TEST(Shortfalls, ClaimsThatWereNotTestedAreOneLineOfAFewNames) {
  KernelResult result = result_of(10, 0, 0);
  result.never_judged = {"bf16"};
  EXPECT_TRUE(shortfalls_of(result, false).empty());
  EXPECT_EQ(shortfalls_of(result), std::vector<std::string>{"claimed and not tested: bf16"});
  result.never_judged.assign(9, "bf16");
  EXPECT_NE(shortfalls_of(result)[0].find(", and 3 more"), std::string::npos);
}

TEST(Shortfalls, RefusalsOfAPluginAreSaidAlsoWhereNoCaseWasGivenUp) {
  KernelResult result = result_of(10, 0, 0);
  result.refusals.add("no bf16");
  EXPECT_TRUE(shortfalls_of(result).empty());
  KernelInfo plugin = subject();
  plugin.plugin = "mine.so";
  result.kernel = &plugin;
  ASSERT_EQ(shortfalls_of(result).size(), 1U);
  EXPECT_NE(shortfalls_of(result)[0].find("1 refused (\"no bf16\"), 10 judged"), std::string::npos);
}

}  // namespace
}  // namespace attest
